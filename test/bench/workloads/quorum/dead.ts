import { rowOf, type Comparison, type Metric } from '../../comparison.js';
import { FENCED, UNFENCED } from '../../contenders.js';
import { compare, ownViolations } from '../../measure/compare.js';
import { periodsOf } from '../../measure/periods.js';
import { runRound } from '../../measure/round.js';
import { median } from '../../measure/statistics.js';
import { Opened } from '../../processes/opened.js';
import { QuorumServers } from '../../processes/quorum-servers.js';
import { RedisServer } from '../../../support/servers/redis-server.js';
import type { Bench, Finding, Outcome, Workload } from '../../workload.js';
import { aheadOfPeers, CONTENDERS, Entrants, prefixOf, QUICK_SIZES, SIZES } from './entrants.js';

const CALLERS = [1, 50] as const;
/** A library that serves no caller within this time did not finish. */
const WARM_UP_MS = 1_500;
const GRACE_MS = 300;
/** Noise of a ratio of two equal things on a busy machine. */
const NOISE = 0.95;

/** What is wrong with the last server. */
const STATES = ['up', 'dead', 'hung'] as const;
type State = (typeof STATES)[number];

const WORDS: Readonly<Record<Exclude<State, 'up'>, string>> = {
  dead: 'one server refuses connections',
  hung: 'one server does not answer',
};

const TIME: Metric = {
  key: 'time-dead',
  what: `${WORDS.dead}, 1 caller: time of a lock and its release`,
  unit: 'µs',
  better: 'less',
};
const RATE: Metric = {
  key: 'rate-dead',
  what: `${WORDS.dead}, 50 callers: locks`,
  unit: '/s',
  better: 'more',
};
const RATIOS = (['dead', 'hung'] as const).flatMap((state) =>
  CALLERS.map((callers): Metric => ({
    key: `${state}-${callers}`,
    what: `${WORDS[state]}, ${callers === 1 ? '1 caller' : `${callers} callers`}: locks, relative to all servers up`,
    unit: 'ratio',
    better: 'more',
  })),
);

const findingsOf = (comparison: Comparison): Finding[] =>
  comparison.axis!.points.flatMap((at): Finding[] => [
    ...[UNFENCED, FENCED].flatMap(({ name }) =>
      RATIOS.map(({ key, what }) => ({
        what: `${at} servers, ${name}: ${what}`,
        values: rowOf(comparison, name, at)!.values[key]!,
        unit: 'ratio' as const,
        target: { atLeast: NOISE },
      })),
    ),
    ...[TIME, RATE].map((metric) => ({
      what: `${at} servers, fencing: false, ${metric.what}, relative to the best peer`,
      values: aheadOfPeers(comparison, metric, at),
      unit: 'ratio' as const,
      target: { atLeast: 1 },
    })),
  ]);

/** The same servers with another last one: up, dead, or stopped. */
const openOf = async (
  bench: Bench,
  opened: Opened,
  size: number,
): Promise<Readonly<Record<State, Entrants>>> => {
  const { servers } = opened.use(await QuorumServers.start(size));
  const [dead, hung] = await Promise.all([RedisServer.start(), RedisServer.start()]);
  opened.use(dead);
  opened.use(hung);
  const others = servers.slice(0, -1).map(({ url }) => url);
  const on = async (last: RedisServer): Promise<Entrants> =>
    opened.use(await Entrants.on(bench, [...others, last.url]));
  const entrants = { up: await on(servers.at(-1)!), dead: await on(dead), hung: await on(hung) };
  await dead.kill('SIGKILL');
  await hung.kill('SIGSTOP');
  return entrants;
};

/** The cost of an unavailable server of a quorum. */
export const quorumDead: Workload = {
  name: 'quorum-dead',
  title: 'A quorum of 3 and of 5 servers, one of them dead: free keys, nothing inside',
  shows:
    'Whether locks are slower while a server is dead (its port refuses connections) or hangs (SIGSTOP: it accepts connections and ' +
    'never replies) than while all servers are up. Each library has three processes that run in turn within a round. Their servers ' +
    'are the same, except the last one.',
  doesNotShow:
    'The time when a server dies, and the return of a server. Clients have the defaults of ioredis and go-redis: they keep ' +
    'commands for an unavailable server for a while before the commands fail.',
  async run(bench: Bench): Promise<Outcome> {
    const { rounds, pace, quick } = bench;
    const sizes = quick ? QUICK_SIZES : SIZES;
    await using opened = new Opened();
    const quorums = new Map<number, Readonly<Record<State, Entrants>>>();
    for (const size of sizes) quorums.set(size, await openOf(bench, opened, size));
    const comparison = await compare(bench, {
      title: this.title,
      metrics: [TIME, RATE, ...RATIOS],
      contenders: CONTENDERS,
      axis: { what: 'servers', points: sizes },
      rounds,
      async measure(contender, size, round) {
        const quorum = quorums.get(size)!;
        const values: Record<string, number> = {};
        const total = { violations: 0, failures: 0, firstFailure: undefined as string | undefined };
        for (const callers of CALLERS) {
          const periods: Record<State, number[]> = { up: [], dead: [], hung: [] };
          const slice = async (state: State, forMs: number) => {
            const result = await quorum[state].of(contender)[0]!.run(contender.style, {
              ...{ callers, forMs, workMs: 0, graceMs: GRACE_MS, noteTimes: callers === 1 },
              keys: 'free',
              prefix: prefixOf(contender),
            });
            total.violations += result.violations;
            total.failures += result.failures;
            total.firstFailure ??= result.firstFailure;
            periods[state].push(...periodsOf(result));
            return result;
          };
          for (const state of STATES) {
            const { sections } = await slice(state, round === 0 ? WARM_UP_MS : WARM_UP_MS / 3);
            if (sections === 0 && state !== 'up') {
              throw new Error(
                `no caller was served within ${WARM_UP_MS + GRACE_MS} ms while ${WORDS[state]}`,
              );
            }
          }
          for (const state of STATES) periods[state] = [];
          const rates = await runRound(STATES, pace, slice);
          // One caller acquires locks one after the other: their median time counts. For many callers the rate counts.
          const [up, dead, hung] =
            callers === 1
              ? STATES.map((state) => 1e3 / median(periods[state]))
              : rates.map(({ rate }) => rate);
          values[`dead-${callers}`] = dead! / up!;
          values[`hung-${callers}`] = hung! / up!;
          if (callers === 1) values[TIME.key] = 1e6 / dead!;
          else values[RATE.key] = dead!;
        }
        return { ...total, values };
      },
    });
    return { findings: findingsOf(comparison), violations: ownViolations(comparison), comparison };
  },
};
