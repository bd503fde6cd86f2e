import { TestWorker } from '../../support/worker.js';
import { rowOf, type Metric } from '../comparison.js';
import { BY_HAND, FLOOR, libraries, OURS, type Contender } from '../contenders.js';
import { compare, ownViolations } from '../measure/compare.js';
import { contended } from '../measure/contended.js';
import { median, percentile } from '../measure/statistics.js';
import type { LoadResult } from '../processes/load.js';
import type { FromMessage, ToMessage } from '../processes/message.process.js';
import type { Bench, Outcome, Workload } from '../workload.js';

const PROCESSES = 2;
const WORK_MS = 10;
const FOR_MS = 2_000;
const ROUND_TRIPS_FOR_MS = 500;
const DELAYS_MS = [0, 5];
const QUICK_DELAYS_MS = [5];
/** Target for each delay, in round trips. */
const TARGETS: Readonly<Record<number, number>> = { 0: 2, 5: 1.15 };
/** The floor sends two requests between the end of a section and the start of the next one. */
const REQUESTS = 2;

const metrics: readonly Metric[] = [
  { key: 'p50', what: 'from end to start, median', unit: 'ms', better: 'less' },
  { key: 'p99', what: '99 %', unit: 'ms', better: 'less' },
  { key: 'trips', what: 'round trips of the floor', unit: 'ratio', better: 'less' },
];

/** The time from the end of each section to the beginning of the next, in the other process or in the same one. */
const gapsOf = (results: readonly Pick<LoadResult, 'times'>[], where: 'other' | 'same'): number[] => {
  const sections = results
    .flatMap(({ times }, process) => times.map(([beganAt, endedAt]) => ({ process, beganAt, endedAt })))
    .sort((a, b) => a.beganAt - b.beganAt);
  return sections.slice(1).flatMap((next, at) => {
    const before = sections[at]!;
    const isSame = next.process === before.process;
    return isSame === (where === 'same') ? [next.beganAt - before.endedAt] : [];
  });
};

/** Measures how long a bare message takes from one process to the other, in ms: the lower bound of a wake-up. */
const bareMessageMs = async (url: string, forMs: number): Promise<number> => {
  const module = new URL('../processes/message.process.ts', import.meta.url);
  const start = () => TestWorker.start<ToMessage, FromMessage>(module);
  await using one = start();
  await using two = start();
  one.send({ type: 'open', url, own: 'one', other: 'two' });
  two.send({ type: 'open', url, own: 'two', other: 'one' });
  await Promise.all([one.next('opened'), two.next('opened')]);
  for (const worker of [one, two]) worker.send({ type: 'run', forMs, workMs: WORK_MS });
  one.send({ type: 'begin' });
  return median(gapsOf(await Promise.all([one.next('ran'), two.next('ran')]), 'other'));
};

/** How long the lock is free although a caller of another process waits for it. */
export const wakeUp: Workload = {
  name: 'wake-up',
  title: `Wake-up: one key, ${PROCESSES} processes with one caller each, ${WORK_MS} ms of work inside, Redis 0 and 5 ms away`,
  shows:
    'The time from the end of a section to the start of the next one in another process, which waits. A ' +
    'round trip of the floor is half of the time that a bare connection needs for the two requests between two sections.',
  doesNotShow: 'How often the same process gets the lock again although the other process waits.',
  charts: [
    {
      kind: 'lines',
      file: 'wake-up.svg',
      title: 'From the end of a section to the next in another process, by delay to Redis',
      metric: 'p50',
    },
  ],
  async run(bench: Bench): Promise<Outcome> {
    const { server, pace, growthRounds, quick } = bench;
    const way = await bench.network.open();
    const delays = quick ? QUICK_DELAYS_MS : DELAYS_MS;
    const roundTripMs = async (url: string): Promise<number> => {
      const alone = { processes: 1, callers: 1, forMs: ROUND_TRIPS_FOR_MS * pace, workMs: WORK_MS };
      const { results } = await contended(bench, FLOOR, { ...alone, url, keys: 'free', noteTimes: true });
      return median(gapsOf(results, 'same')) / REQUESTS;
    };
    const contenders: readonly Contender[] = [OURS, BY_HAND, ...libraries.slice(1)];
    const bareTrips = new Map<number, number[]>(delays.map((at) => [at, []]));
    const comparison = await compare(bench, {
      title: this.title,
      metrics,
      contenders,
      axis: { what: 'ms each way', points: delays },
      rounds: growthRounds,
      async measure(contender, at, round) {
        await way.delay(at);
        const url = at === 0 ? server.url : way.url;
        const tripMs = await roundTripMs(url);
        if (contender === OURS) {
          bareTrips.get(at)!.push((await bareMessageMs(url, ROUND_TRIPS_FOR_MS * pace)) / tripMs);
        }
        const ran = await contended(bench, contender, {
          processes: PROCESSES,
          url,
          callers: 1,
          forMs: FOR_MS * pace,
          keys: { one: `awaited-${at}-${round}` },
          workMs: WORK_MS,
          noteTimes: true,
        });
        const gaps = gapsOf(ran.results, 'other').sort((a, b) => a - b);
        if (gaps.length === 0) return { ...ran, values: {} };
        const p50 = median(gaps);
        return { ...ran, values: { p50, p99: percentile(gaps, 99), trips: p50 / tripMs } };
      },
    });
    return {
      findings: delays.flatMap((at) => [
        {
          what: `Redis ${at} ms away: wake-up, in round trips of the floor`,
          values: rowOf(comparison, BY_HAND.name, at)!.values['trips']!,
          unit: 'ratio',
          target: { atMost: TARGETS[at]! },
        },
        {
          what: `Redis ${at} ms away: a bare message from one process to the other, in round trips of the floor`,
          values: bareTrips.get(at)!,
          unit: 'ratio',
        },
      ]),
      violations: ownViolations(comparison),
      comparison,
    };
  },
};
