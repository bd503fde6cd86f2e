import type { Comparison, Metric } from '../../comparison.js';
import type { Contender } from '../../contenders.js';
import { emptyRow, ownViolations } from '../../measure/compare.js';
import { runRound, warmUp } from '../../measure/round.js';
import type { Bench, Finding, Outcome, Workload } from '../../workload.js';
import { CURATOR, Entrants, FLOOR, OURS, relativeTo } from './entrants.js';
import type { ZooKeeperPlace } from './places.js';

const CALLERS = [1, 100];
const CONTENDERS = [OURS, CURATOR, FLOOR];
/** Long enough for the JVM to compile well what runs. */
/** Each caller gets several locks in it, although commits wait for a disk. */
const SLICE_MS = 200;
const OF_FLOOR = 0.9;

const crowd = (callers: number): string => (callers === 1 ? '1 caller' : `${callers} callers`);

const metrics: readonly Metric[] = CALLERS.flatMap((callers): Metric[] => [
  { key: `rate-${callers}`, what: `${crowd(callers)}: locks`, unit: '/s', better: 'more' },
  { key: `cpu-${callers}`, what: `${crowd(callers)}: CPU time per lock`, unit: 'µs', better: 'less' },
]);

const findingsOf = (comparison: Comparison): Finding[] =>
  CALLERS.flatMap((callers): Finding[] => [
    {
      what: `${crowd(callers)}: locks, relative to Curator`,
      values: relativeTo(comparison, CURATOR, `rate-${callers}`),
      unit: 'ratio',
      target: { atLeast: 1 },
    },
    {
      what: `${crowd(callers)}: locks, relative to the floor`,
      values: relativeTo(comparison, FLOOR, `rate-${callers}`),
      unit: 'ratio',
      target: { atLeast: OF_FLOOR },
    },
  ]);

/** Locks in ZooKeeper without other callers, beside Curator and beside the bare requests. */
export const zookeeperFree = ({ id, title, shows, start }: ZooKeeperPlace): Workload => ({
  name: `zookeeper-${id}-free`,
  title: `${title}: free keys, nothing inside`,
  shows:
    `How many locks a second one process acquires and releases, with one session. ${shows} All sessions are on the same server, a ` +
    'follower if there is one. Curator runs in Java, with a thread for each caller. The floor is the client of this library, ' +
    'which sends a create, a list of the children and a delete, and waits for no reply between the first two.',
  doesNotShow:
    'Servers on machines of their own, with disks of their own: here two CPUs carry all servers and clients. The ' +
    "first lock of a key, whose parent is created; and the server's removal of such parents, which is put off here.",
  charts: [
    {
      kind: 'bars',
      file: `zookeeper-${id}-free.svg`,
      title: `${title}: free keys, nothing inside`,
      metrics: CALLERS.map((callers) => `rate-${callers}`),
    },
  ],
  async run(bench: Bench): Promise<Outcome> {
    const { progress, rounds, pace, quick } = bench;
    await using zookeeper = await start();
    await using entrants = await Entrants.on(bench, zookeeper.urls.slice(0, 1), CONTENDERS);
    const rows = CONTENDERS.map((contender) => emptyRow(contender, undefined, metrics));
    const comparison: Comparison = { metrics, axis: undefined, rows };
    progress.begin(this.title, CALLERS.length * (rounds + 1));
    for (const callers of CALLERS) {
      const slice = async (contender: Contender, forMs: number) => {
        const load = { callers, forMs, keys: 'free', workMs: 0, prefix: 'bench-' } as const;
        const result = await entrants.of(contender)[0]!.run(contender.style, load);
        const row = rows[CONTENDERS.indexOf(contender)]!;
        row.failures += result.failures;
        row.trouble ??= result.firstFailure;
        return result;
      };
      await warmUp(CONTENDERS, slice, { quick });
      progress.step();
      for (let round = 0; round < rounds; round++) {
        const results = await runRound(CONTENDERS, pace, (contender) => slice(contender, SLICE_MS));
        results.forEach(({ rate, cpuUs, violations }, at) => {
          const row = rows[at]!;
          row.values[`rate-${callers}`]!.push(rate);
          row.values[`cpu-${callers}`]!.push(cpuUs);
          row.violations += violations;
        });
        progress.step();
      }
    }
    return { findings: findingsOf(comparison), violations: ownViolations(comparison), comparison };
  },
});
