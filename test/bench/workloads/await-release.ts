import { runRound } from '../measure/round.js';
import { SubjectWorker } from '../processes/subject-worker.js';
import type { Bench, Finding, Outcome, Workload } from '../workload.js';

const DELAY_MS = 5;
/** A lock takes 20 ms there; in a shorter slice the last one would weigh too much. */
const LONGER = 4;
const STYLES = ['withLock', 'withLock, awaitRelease: false'] as const;

/** The time that a caller saves without waiting for its release, in one process and on the same keys. */
export const awaitRelease: Workload = {
  name: 'await-release',
  title: `awaitRelease: false beside withLock, one caller, free keys, no work inside, Redis ${DELAY_MS} ms away`,
  async run({ network, progress, rounds, pace }: Bench): Promise<Outcome> {
    const way = await network.open();
    await way.delay(DELAY_MS);
    await using worker = await SubjectWorker.start('nest-redis-lock', { url: way.url });
    const slice = (style: string, forMs: number) =>
      worker.run(style, { callers: 1, forMs: LONGER * forMs, keys: 'free', workMs: 0 });
    progress.begin(this.title, rounds + 1);
    for (const style of STYLES) await slice(style, 50);
    progress.step();
    const [rates, unawaited, ratios]: [number[], number[], number[]] = [[], [], []];
    let violations = 0;
    for (let round = 0; round < rounds; round++) {
      const [awaited, behind] = await runRound(STYLES, pace, slice);
      rates.push(awaited!.rate);
      unawaited.push(behind!.rate);
      ratios.push(behind!.rate / awaited!.rate);
      violations += awaited!.violations + behind!.violations;
      progress.step();
    }
    const findings: readonly Finding[] = [
      { what: 'withLock: locks', values: rates, unit: '/s' },
      { what: 'awaitRelease: false: locks', values: unawaited, unit: '/s' },
      {
        what: 'awaitRelease: false: locks, ratio to withLock',
        values: ratios,
        unit: 'ratio',
        target: { atLeast: 1.8 },
      },
    ];
    return { findings, violations };
  },
};
