// npm run bench: what the library costs, measured on a Redis server of its own, against the bare commands.
//
// A workload measures and names its targets (workloads/), a subject is what it measures (subjects/), in processes of
// its own (processes/). To add one of either, write a file beside the others and list it in their index.ts.
import { writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { RedisServer } from '../support/redis-server.js';
import { readOptions, USAGE, type BenchOptions } from './options.js';
import { progressOn } from './report/progress.js';
import { isMet, tableOf, type Result } from './report/table.js';

const NOT_SHOWN =
  'Free keys: Redis on one CPU, the callers on another (taskset). Not shown: a network between the processes and Redis, more load than one machine has, what Redis itself could do ' +
  'for more clients, and how any of this goes while something fails. Absolute numbers are those of this machine at ' +
  'this hour; the ratios are what to compare.';

const environment = async (server: RedisServer): Promise<Record<string, string>> => {
  const version = /^(?:valkey|redis)_version:(\S+)/m.exec(await server.text('INFO', 'server'))?.[1];
  const [cpu] = cpus();
  return {
    when: new Date().toISOString(),
    node: process.version,
    redis: version ?? 'unknown',
    cpu: `${cpus().length} × ${cpu?.model.trim() ?? 'unknown'}`,
  };
};

const jsonOf = (
  { quick, rounds, cycles }: BenchOptions,
  machine: Record<string, string>,
  results: readonly Result[],
): string =>
  JSON.stringify(
    {
      machine,
      options: { quick, rounds, cycles },
      workloads: results.map(({ workload, outcome }) => ({
        name: workload.name,
        title: workload.title,
        violations: outcome.violations,
        findings: outcome.findings.map((finding) => ({ ...finding, met: isMet(finding) })),
      })),
    },
    null,
    2,
  );

const measure = async (options: BenchOptions): Promise<boolean> => {
  const { rounds, cycles, pace } = options;
  const progress = progressOn(process.stderr);
  const results: Result[] = [];
  await using server = await RedisServer.start();
  const machine = await environment(server);
  for (const workload of options.workloads) {
    try {
      const outcome = await workload.run({ server, progress, rounds, cycles, pace });
      results.push({ workload, outcome });
    } finally {
      progress.end();
    }
  }
  console.log(`\n${tableOf(results)}\n`);
  console.log(`Node ${machine['node']}, Redis ${machine['redis']}, ${machine['cpu']}; ${rounds} rounds.`);
  console.log(NOT_SHOWN);
  if (options.json) await writeFile(options.json, `${jsonOf(options, machine, results)}\n`);
  return results.every(({ outcome }) => outcome.violations === 0);
};

const optionsOrUsage = (): BenchOptions | undefined => {
  try {
    const options = readOptions(process.argv.slice(2));
    if (!options) console.log(USAGE);
    return options;
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    process.exitCode = 1;
    return undefined;
  }
};

const options = optionsOrUsage();
// A number that misses its target is a result. A lock that does not exclude is a failure.
if (options && !(await measure(options))) process.exitCode = 1;
