import type { Random } from '../engine/random.js';
import {
  MAX_AHEAD_MS,
  minorityOf,
  someOf,
  TROUBLE_MS,
  type NodeRestart,
  type QuorumFault,
} from './quorum-faults.js';
import type { Visit } from '../callers/visit.js';

const HOUR_MS = 3_600_000;

/** What a scene happens to. */
export interface Cast {
  readonly nodes: number;
  readonly processes: number;
  readonly watchdogMs: number;
  readonly latencyMs: readonly [number, number];
}

/** Something that needs callers and faults at one time, which chance alone hardly brings together. */
export interface Scene {
  readonly faults: readonly QuorumFault[];
  /** Callers that come for it. */
  readonly visits: readonly { readonly process: number; readonly visit: Visit }[];
}

/**
 * Callers of two processes ask for a key in the same moment, and each comes late to some node. One comes very late to another
 * one, where a request of the other caller is lost meanwhile. At times a clock was set ahead right before, so that its node
 * gives no proposed token, and there is a commit.
 *
 * @param jumps whose clocks stay as they are set there
 */
export const race = (random: Random, cast: Cast, jumps: Scene | undefined): Scene => {
  const at = random.between(500, TROUBLE_MS - 3_000);
  const [, slowest] = cast.latencyMs;
  const racers = someOf(random, cast.processes, 2);
  const [losing, late] = racers;
  const [node, ...others] = someOf(random, cast.nodes, cast.nodes);
  const steady = Array.from({ length: cast.nodes }, (_, i) => i).filter(
    (one) => !jumps?.faults.some((fault) => fault.kind === 'clock' && fault.node === one),
  );
  const isSet = random.chance(0.7);
  const set = random.pick(steady);
  const slow = (process: number, on: number, extraMs: number): QuorumFault => {
    return { kind: 'slow', process, node: on, at: at - 2, forMs: 4 + 2 * slowest, extraMs };
  };
  return {
    visits: racers.map((process) => ({
      process,
      visit: {
        key: 'race',
        at: at + random.between(0, slowest),
        thinkMs: 0,
        waitMs: random.pick([0, 0, 100, 2_000]),
        workMs: random.pick([0, 0, 1, 5]),
      },
    })),
    faults: [
      { kind: 'lost-request', process: losing!, node: node!, at: at - 2, after: random.pick([0, 1, 1, 2]) },
      slow(late!, node!, random.pick([30, 80, 120])),
      ...racers.map((process) => slow(process, random.pick(others), random.pick([5, 15]))),
      ...(isSet ? [{ kind: 'clock', node: set, at: at - 2, aheadMs: MAX_AHEAD_MS } as const] : []),
    ],
  };
};

/** A holder that works on can reach no node any more, or stands still, until its lease is over. Others wait for just that. */
export const leftAlone = (random: Random, cast: Cast): Scene => {
  const { watchdogMs } = cast;
  const at = random.between(500, 4_000);
  const [holder, ...others] = someOf(random, cast.processes, cast.processes);
  const takesAt = Math.max(0, at - random.between(0.05, 0.5) * Math.min(watchdogMs, 2_000));
  const visit = { key: 'alone', thinkMs: 0 };
  return {
    visits: [
      {
        process: holder!,
        visit: { ...visit, at: takesAt, waitMs: 100, workMs: 2 * watchdogMs },
      },
      ...others.map((process) => ({
        process,
        visit: { ...visit, at: at + random.between(0, 400), waitMs: 3 * watchdogMs, workMs: 5 },
      })),
    ],
    faults: [
      random.chance(0.8)
        ? { kind: 'isolation', process: holder!, at, forMs: 1.5 * watchdogMs }
        : { kind: 'pause', process: holder!, at, forMs: random.between(0.9, 1) * watchdogMs },
    ],
  };
};

/**
 * The wall clocks of a minority are set by hours, some moments before a server forgets. They stay so, or they are set right
 * again: not within a lease, and then nothing is forgotten any more (see docs/stores/quorum.md).
 */
export const jump = (random: Random, cast: Cast, restarts: readonly NodeRestart[]): Scene => {
  const { nodes, processes } = cast;
  const forgetting = restarts.filter(({ forgets, at }) => forgets && at > 1_500);
  const before = forgetting.length > 0 ? random.pick(forgetting) : undefined;
  const at = (before?.at ?? random.between(1_500, 9_000)) - random.between(50, 1_000);
  const others = Array.from({ length: nodes }, (_, node) => node).filter((node) => node !== before?.node);
  const set = someOf(random, others.length, random.whole(1, minorityOf(nodes))).map((i) => others[i]!);
  const faults = set.flatMap((node): QuorumFault[] => {
    const aheadMs = random.pick([2, 2, 2, 30, -2]) * HOUR_MS;
    const jumps: QuorumFault = { kind: 'clock', node, at, aheadMs };
    if (!before || random.chance(0.4)) return [jumps];
    // Its connections break, so it is found out and nobody gets more of its tokens.
    const breaksAt = at + random.between(0, before.at - at);
    const breaks = Array.from({ length: processes }, (_, process): QuorumFault => {
      return { kind: 'cut', process, node, at: breaksAt, lateMs: random.pick([undefined, 10]) };
    });
    return [jumps, ...breaks];
  });
  const visits = Array.from({ length: random.whole(1, 3) }, () => ({
    process: random.whole(0, processes - 1),
    visit: {
      key: random.pick(['jump', 'jump', 'a']),
      at: at + random.between(1, 300),
      thinkMs: 0,
      waitMs: 2_000,
      workMs: random.pick([0, 1, 20]),
    },
  }));
  const rightAt = at + 1.1 * cast.watchdogMs + random.between(0, 3_000);
  const isLast = !restarts.some((one) => one.forgets && one.at >= rightAt);
  if (isLast && random.chance(0.5)) {
    faults.push(...set.map((node): QuorumFault => ({ kind: 'clock', node, at: rightAt, aheadMs: 0 })));
  }
  return { faults, visits };
};
