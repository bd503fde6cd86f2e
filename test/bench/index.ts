// npm run bench: measures the cost of the library on its own Redis server. It compares with the bare commands and with
// peers, which are installed from the registry (peers/).
//
// A workload (workloads/) measures subjects (subjects/) in their own processes (processes/) and names its targets. To add
// a workload or a subject, write a file beside the others and list it in their index.ts.
import { readFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { RedisServer } from '../support/servers/redis-server.js';
import { readOptions, USAGE, type BenchOptions } from './options.js';
import { Crew } from './processes/crew.js';
import { SharedNetwork } from './processes/network.js';
import { peerVersions } from './subjects/peer.js';
import { progressOn } from '../support/measure/progress.js';
import { updateReadme } from './report/readme.js';
import { machineOf, type Report, type Reported } from './report/report.js';
import { tableOf, targetsOf } from './report/table.js';
import { writePages } from './report/write.js';

const measure = async (options: BenchOptions): Promise<Report> => {
  const { quick, rounds, growthRounds, cycles, command } = options;
  const loadBefore = loadavg();
  const progress = progressOn(process.stderr, options.workloads.length);
  const workloads: Reported[] = [];
  await using server = await RedisServer.start();
  await using network = new SharedNetwork(server);
  await using crew = new Crew();
  const machine = await machineOf(server);
  for (const workload of options.workloads) {
    const { name, title, shows, doesNotShow, charts } = workload;
    const begun = performance.now();
    try {
      const outcome = await workload.run({ ...options, server, progress, crew, network });
      const seconds = (performance.now() - begun) / 1_000;
      workloads.push({ name, title, shows, doesNotShow, charts, seconds, ...outcome });
    } finally {
      progress.end();
    }
  }
  const load = { before: loadBefore, after: loadavg() };
  return { machine, command, load, quick, rounds, growthRounds, cycles, peers: peerVersions(), workloads };
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
if (options) {
  const { from, out, readme } = options;
  const report = from ? (JSON.parse(await readFile(from, 'utf8')) as Report) : await measure(options);
  const { machine, workloads, rounds, growthRounds } = report;
  console.log(`\n${tableOf(workloads)}\n\n\nTargets\n\n${targetsOf(workloads)}\n`);
  console.log(
    `Node ${machine.node}, Redis ${machine.redis}, ${machine.cpu}; ${rounds} rounds, ${growthRounds} for the workloads that ` +
      'grow. Absolute numbers belong to this machine at this time: compare the ratios.',
  );
  if (out !== undefined) console.log(`Written: ${(await writePages(report, out)).join(', ')}`);
  if (readme !== undefined) await updateReadme(readme, report);
  // A number that misses its target is a result. A lock that does not exclude is a failure.
  if (workloads.some(({ violations }) => violations > 0)) process.exitCode = 1;
}
