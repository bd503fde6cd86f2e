import type { Failure } from './report/report.js';
import { runRound, type RoundResult } from './round.js';
import { plan, scheduleText, type Length } from './schedule/schedule.js';
import { SingleRedis, type SingleRedisOptions } from './topology/single-redis.js';

/** The topologies that take turns. */
export const KINDS: Readonly<Record<string, SingleRedisOptions>> = {
  'with AOF': { workers: 3, persistence: 'always' },
  'without persistence': { workers: 3, persistence: 'none' },
  'with a clock that is set': { workers: 3, persistence: 'always', settableClock: true },
};

/** Two rounds on one topology, so that something is left of the first when the second begins. */
const ROUNDS_IN_A_ROW = 2;
const LENGTH: Length = { faults: 11, forMs: 8_000 };
const CALLERS = 8;

const names = Object.keys(KINDS);

/** Which topology a round is run on, and which of its rounds it is. */
const placeOf = (round: number): { kind: string; turn: number } => {
  const session = Math.floor(round / ROUNDS_IN_A_ROW);
  const turn = Math.floor(session / names.length) * ROUNDS_IN_A_ROW + (round % ROUNDS_IN_A_ROW);
  return { kind: names[session % names.length]!, turn };
};

export interface LaboratoryOptions {
  readonly seed: string;
  /** The rounds to run, in this order; may have no end. */
  readonly rounds: Iterable<number>;
  /** Asked before each round. */
  readonly goesOn?: () => boolean;
}

/** Runs rounds, each from its number and the seed alone. */
export async function* runLaboratory({
  seed,
  rounds,
  goesOn,
}: LaboratoryOptions): AsyncGenerator<RoundResult> {
  let topology: SingleRedis | undefined;
  let running = '';
  try {
    for (const round of rounds) {
      if (goesOn?.() === false) return;
      const { kind, turn } = placeOf(round);
      if (!topology || running !== kind) {
        await topology?.[Symbol.asyncDispose]();
        topology = await SingleRedis.start(KINDS[kind]!);
        running = kind;
      }
      const schedule = plan(`${seed}:${kind}`, turn, topology.fitness, LENGTH);
      const result = await runRound(topology, {
        name: `r${round}`,
        seed: `${seed}:${round}`,
        schedule,
        callers: CALLERS,
      });
      yield result;
      // After a round that went wrong nobody knows what the next one would find.
      if (result.violations.length > 0) running = '';
    }
  } finally {
    await topology?.[Symbol.asyncDispose]();
  }
}

/** What there is to say about a round in which something was wrong. */
export const failureOf = (seed: string, round: number, result: RoundResult): Failure => ({
  title: `Round ${round} of seed ${seed}, ${result.topology}`,
  again: `npm run test:faults -- --seed ${seed} --round ${round}`,
  schedule: scheduleText(result.plan.schedule),
  events: result.events,
  violations: result.violations,
  judge: result.judge,
});
