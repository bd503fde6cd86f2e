import { Random } from '../engine/random.js';

/** What goes wrong with a node, or between a process and a node. Times in ms since the beginning. */
export type QuorumFault =
  /** The server dies, and comes back with its data or without. */
  | {
      readonly kind: 'node-restart';
      readonly node: number;
      readonly at: number;
      readonly downMs: number;
      readonly forgets: boolean;
    }
  /** Nothing gets through for a while; what was on its way comes after that, or never. */
  | {
      readonly kind: 'partition';
      readonly process: number;
      readonly node: number;
      readonly at: number;
      readonly forMs: number;
    }
  /** The connection breaks: what is on its way to the node may come later, or be lost. */
  | {
      readonly kind: 'cut';
      readonly process: number;
      readonly node: number;
      readonly at: number;
      readonly lateMs: number | undefined;
    }
  /** The next answers of the node to the process are lost, and with them the connection. */
  | { readonly kind: 'lost-answer'; readonly process: number; readonly node: number; readonly at: number }
  | {
      readonly kind: 'slow';
      readonly process: number;
      readonly node: number;
      readonly at: number;
      readonly forMs: number;
      readonly extraMs: number;
    }
  /** The wall clock of a node is set. */
  | { readonly kind: 'clock'; readonly node: number; readonly at: number; readonly byMs: number }
  | { readonly kind: 'pause'; readonly process: number; readonly at: number; readonly forMs: number }
  | { readonly kind: 'crash'; readonly process: number; readonly at: number };

/** One try of a caller. */
export interface Visit {
  readonly key: string;
  readonly thinkMs: number;
  readonly waitMs: number;
  /** How long it works inside. */
  readonly workMs: number;
}

export interface QuorumPlan {
  readonly seed: number;
  readonly nodes: number;
  /** How fast the clock of each node runs; within a hundredth of the others. */
  readonly nodeRates: readonly number[];
  readonly processes: readonly { readonly rate: number; readonly callers: readonly (readonly Visit[])[] }[];
  readonly watchdogMs: number;
  readonly commandTimeoutMs: number;
  readonly latencyMs: readonly [number, number];
  readonly faults: readonly QuorumFault[];
}

/** When the faults are over. */
export const TROUBLE_MS = 12_000;
const KEYS = ['a', 'b'];

/** From a seed to a plan, as plain data. */
export const quorumPlan = (seed: number): QuorumPlan => {
  const random = new Random(`quorum ${seed}`);
  const nodes = random.pick([2, 3, 3, 3, 4, 5]);
  const watchdogMs = random.pick([1_000, 1_000, 1_000, 20_000]);
  const visit = (): Visit => ({
    key: random.pick(KEYS),
    thinkMs: random.pick([0, 1, 5, 50, 300]),
    waitMs: random.pick([0, 100, 2_000, 5_000]),
    workMs: random.pick([0, 1, 5, 20, 200, 1_500]),
  });
  const caller = (): Visit[] => Array.from({ length: random.whole(2, 8) }, visit);
  const processes = Array.from({ length: random.whole(2, 4) }, () => ({
    rate: random.between(0.998, 1.002),
    callers: Array.from({ length: random.whole(1, 3) }, caller),
  }));
  const latencyMs = random.pick([
    [0.2, 0.6],
    [0.5, 3],
    [1, 20],
  ] as const);
  return {
    seed,
    nodes,
    // One as fast as may be, one as slow as may be.
    nodeRates: Array.from({ length: nodes }, () => random.between(0.994, 1.006)),
    processes,
    watchdogMs,
    commandTimeoutMs: random.pick([100, 300]),
    latencyMs,
    faults: [
      ...restarts(random, nodes, watchdogMs),
      ...Array.from({ length: random.whole(0, 8) }, () => otherFault(random, nodes, processes.length)),
    ],
  };
};

/** At most a minority forgets within the time for which a server stays out. */
const restarts = (random: Random, nodes: number, watchdogMs: number): QuorumFault[] => {
  const faults: QuorumFault[] = [];
  const minority = Math.ceil(nodes / 2) - 1;
  let at = random.between(0, 3_000);
  while (at < TROUBLE_MS - 2_000 && random.chance(0.8)) {
    const hit = Array.from({ length: nodes }, (_, node) => node)
      .sort(() => random.next() - 0.5)
      .slice(0, random.whole(1, Math.max(1, minority)));
    let longest = 0;
    for (const node of hit) {
      const downMs = random.pick([1, 20, 300, 1_500]);
      const forgets = hit.length <= minority && random.chance(0.7);
      const dies = at + random.between(0, 200);
      faults.push({ kind: 'node-restart', node, at: dies, downMs, forgets });
      longest = Math.max(longest, dies - at + downMs);
    }
    // A lease that was there before is over, and the server counts again.
    at += longest + 2.5 * watchdogMs + random.between(0, 2_000);
  }
  return faults;
};

const otherFault = (random: Random, nodes: number, processes: number): QuorumFault => {
  const at = random.between(0, TROUBLE_MS - 3_000);
  const node = random.whole(0, nodes - 1);
  const process = random.whole(0, processes - 1);
  const forMs = random.pick([5, 50, 400, 2_500]);
  switch (
    random.pick([
      'partition',
      'cut',
      'cut',
      'lost-answer',
      'lost-answer',
      'slow',
      'clock',
      'pause',
      'crash',
    ] as const)
  ) {
    case 'partition':
      return { kind: 'partition', process, node, at, forMs };
    case 'cut':
      return { kind: 'cut', process, node, at, lateMs: random.pick([undefined, 10, 150]) };
    case 'lost-answer':
      return { kind: 'lost-answer', process, node, at };
    case 'slow':
      return { kind: 'slow', process, node, at, forMs, extraMs: random.pick([30, 90, 250]) };
    case 'clock':
      return { kind: 'clock', node, at, byMs: random.pick([-300, -50, 50, 300]) };
    case 'pause':
      return { kind: 'pause', process, at, forMs: random.pick([20, 300, 1_200, 2_500]) };
    case 'crash':
      return { kind: 'crash', process, at };
  }
};
