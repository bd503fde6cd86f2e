import type { Redis } from 'ioredis';
import { rowOf, type Comparison, type Metric } from '../../comparison.js';
import { FENCED, UNFENCED, type Contender } from '../../contenders.js';
import { compare, ownViolations } from '../../measure/compare.js';
import { periodsOf } from '../../measure/periods.js';
import { median } from '../../measure/statistics.js';
import { majorityOf } from '../../../../lib/stores/redis/quorum/quorum-call.js';
import { Opened } from '../../processes/opened.js';
import { QuorumServers } from '../../processes/quorum-servers.js';
import { connect } from '../../subjects/peer.js';
import type { Bench, Finding, Outcome, Workload } from '../../workload.js';
import { aheadOfPeers, CONTENDERS, Entrants, prefixOf, QUICK_SIZES, SIZES } from './entrants.js';

const FAR_MS = 20;
const MEDIAN_MS = 5;
const FOR_MS = 600;
/** Code that has not run before is slower than in an app. */
const WARM_UP_CALLERS = 20;
const WARM_UP_MS = 1_500;
const PINGS = 15;

const NEAR: Metric = { key: 'near', what: 'all servers near', unit: 'ms', better: 'less' };
const FAR: Metric = {
  key: 'far',
  what: `one server ${FAR_MS} ms away each way`,
  unit: 'ms',
  better: 'less',
};
const TRIPS: Metric = {
  key: 'trips',
  what: `a majority ${MEDIAN_MS} ms away, the others ${FAR_MS} ms: round trips to the median server`,
  unit: 'ratio',
  better: 'less',
};

/** Expected round trips to the median server for a lock and its release, without tokens and with them. */
const EXPECTED_TRIPS = 2;
/** Time beside the round trips: scripts, timers of the network, a busy machine. */
const SLACK = 1.15;

/** Measures a round trip of a bare command, in ms. */
const roundTrip = async (client: Redis): Promise<number> => {
  const times: number[] = [];
  for (let i = 0; i < PINGS; i++) {
    const sentAt = performance.now();
    await client.ping();
    times.push(performance.now() - sentAt);
  }
  return median(times);
};

const findingsOf = (comparison: Comparison): Finding[] =>
  comparison.axis!.points.flatMap((at): Finding[] => [
    ...[UNFENCED, FENCED].map((contender) => ({
      what: `${at} servers, ${contender.name}: round trips to the median server`,
      values: rowOf(comparison, contender.name, at)!.values[TRIPS.key]!,
      unit: 'ratio' as const,
      target: { atMost: EXPECTED_TRIPS * SLACK },
    })),
    {
      what: `${at} servers, one far, fencing: false: locks, relative to the best peer`,
      values: aheadOfPeers(comparison, FAR, at),
      unit: 'ratio',
      target: { atLeast: 1 },
    },
  ]);

/** Whether a lock waits for the median server of a quorum, or for the slowest. */
export const quorumFar: Workload = {
  name: 'quorum-far',
  title: 'A quorum of 3 and of 5 servers: some of them far, 1 caller, time of a lock and its release',
  shows:
    'Whether a lock takes the time of the median server or of the slowest one. A lock and its release are two round trips, ' +
    'also with a token. A round trip is the time of a command on a bare connection.',
  doesNotShow: 'Varying delays and lost packets.',
  charts: [
    {
      kind: 'lines',
      file: 'quorum-far.svg',
      title: `A quorum with one server ${FAR_MS} ms away: time of a lock and its release, by servers`,
      metric: FAR.key,
    },
  ],
  async run(bench: Bench): Promise<Outcome> {
    const { rounds, pace, quick } = bench;
    const sizes = quick ? QUICK_SIZES : SIZES;
    await using opened = new Opened();
    const quorums = new Map<
      number,
      { readonly nodes: QuorumServers; readonly entrants: Entrants; readonly bare: Redis }
    >();
    for (const size of sizes) {
      const nodes = opened.use(await QuorumServers.start(size));
      const urls = await nodes.farUrls();
      const bare = await connect(urls[0]!);
      opened.use({ [Symbol.asyncDispose]: () => Promise.resolve(bare.disconnect()) });
      quorums.set(size, { nodes, bare, entrants: opened.use(await Entrants.on(bench, urls)) });
    }
    const comparison = await compare(bench, {
      title: this.title,
      metrics: [NEAR, FAR, TRIPS],
      contenders: CONTENDERS,
      axis: { what: 'servers', points: sizes },
      rounds,
      async measure(contender: Contender, size, round) {
        const { nodes, entrants, bare } = quorums.get(size)!;
        const [worker] = entrants.of(contender);
        const near = nodes.servers.map(() => 0);
        const far = nodes.servers.map((_one, i) => (i === size - 1 ? FAR_MS : 0));
        const most = nodes.servers.map((_one, i) => (i < majorityOf(size) ? MEDIAN_MS : FAR_MS));
        const total = { violations: 0, failures: 0, firstFailure: undefined as string | undefined };
        const timeWith = async (delays: readonly number[]): Promise<number> => {
          await nodes.delay(delays);
          const result = await worker!.run(contender.style, {
            ...{ callers: 1, forMs: FOR_MS * Math.max(pace, 0.5), workMs: 0, noteTimes: true },
            keys: 'free',
            prefix: prefixOf(contender),
          });
          total.violations += result.violations;
          total.failures += result.failures;
          total.firstFailure ??= result.firstFailure;
          return median(periodsOf(result));
        };
        if (round === 0) {
          await nodes.delay(near);
          await worker!.run(contender.style, {
            ...{ callers: WARM_UP_CALLERS, forMs: WARM_UP_MS * pace, workMs: 0 },
            keys: 'free',
            prefix: prefixOf(contender),
          });
        }
        const values = {
          near: await timeWith(near),
          far: await timeWith(far),
          trips: (await timeWith(most)) / (await roundTrip(bare)),
        };
        return { ...total, values };
      },
    });
    return { findings: findingsOf(comparison), violations: ownViolations(comparison), comparison };
  },
};
