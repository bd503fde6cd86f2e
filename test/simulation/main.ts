// node --import ./test/support/typescript/register-with-source.mjs test/simulation/main.ts
//   [--seeds n] [--from n] [--minutes n] [--seed n]
//
// Runs many seeds of the simulation, for hours if asked to, or tells about one. The exit code is 1 when a promise of
// the library was broken; the first seed that does is shrunk and told line by line.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { timelineOf } from '../checker/timeline.js';
import { makePlan } from './plan/make-plan.js';
import { judge } from './run/judge.js';
import { farmSeeds, type FarmOptions } from './seeds/seed-farm.js';
import { reportOn } from './shrink/report.js';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    from: { type: 'string', default: '1' },
    minutes: { type: 'string' },
    seed: { type: 'string' },
  },
});

const reportOne = async (seed: number): Promise<boolean> => {
  const plan = makePlan(seed);
  const { events, violations } = await judge(plan);
  if (violations.length > 0) console.log(await reportOn(plan));
  else console.log(`${JSON.stringify(plan)}\n\n${timelineOf(events, [])}\n\nNo promise was broken.`);
  return violations.length === 0;
};

const runMany = async (): Promise<boolean> => {
  const minutes = Number(values.minutes ?? 0);
  const seeds = values.seeds ? Number(values.seeds) : minutes > 0 ? Infinity : 20_000;
  const startedAt = performance.now();
  const perMinute = (run: number): number => Math.round((run / (performance.now() - startedAt)) * 60_000);
  let reported = 0;
  const onProgress: FarmOptions['onProgress'] = (run, failed) => {
    // Said at once: a run of hours may not come to its end.
    for (const { seed, rules } of failed.slice(reported))
      console.log(`seed ${seed} fails: ${rules.join(', ')}`);
    reported = failed.length;
    process.stderr.write(`\r${run} seeds, ${perMinute(run)} in a minute, ${failed.length} failed   `);
  };
  const { run, failed } = await farmSeeds({
    from: Number(values.from),
    seeds,
    processes: availableParallelism(),
    signal: minutes > 0 ? AbortSignal.timeout(minutes * 60_000) : undefined,
    onProgress,
  });
  process.stderr.write('\n');
  console.log(`${run} seeds, ${perMinute(run)} in a minute, ${failed.length} failed`);
  if (failed[0]) console.log(`\n${await reportOn(makePlan(failed[0].seed))}`);
  return failed.length === 0;
};

const passed = values.seed === undefined ? await runMany() : await reportOne(Number(values.seed));
process.exitCode = passed ? 0 : 1;
