import type { Random } from '../engine/random.js';

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
  /** Nothing gets through between a process and all nodes; what was sent meanwhile never comes. */
  | { readonly kind: 'isolation'; readonly process: number; readonly at: number; readonly forMs: number }
  /** The connection breaks: what is on its way to the node may come later, or be lost. */
  | {
      readonly kind: 'cut';
      readonly process: number;
      readonly node: number;
      readonly at: number;
      readonly lateMs: number | undefined;
    }
  /** The next answer of the node to the process is lost, and with it the connection. */
  | { readonly kind: 'lost-answer'; readonly process: number; readonly node: number; readonly at: number }
  /** So is the next answer, and the request comes to the node once more, so much later. */
  | {
      readonly kind: 'repeat';
      readonly process: number;
      readonly node: number;
      readonly at: number;
      readonly lateMs: number;
    }
  /** A request is lost, and with it the connection: the next one, or one behind it. */
  | {
      readonly kind: 'lost-request';
      readonly process: number;
      readonly node: number;
      readonly at: number;
      /** How many get through before it. */
      readonly after: number;
    }
  | {
      readonly kind: 'slow';
      readonly process: number;
      readonly node: number;
      readonly at: number;
      readonly forMs: number;
      readonly extraMs: number;
    }
  /** The wall clock of a node is set: as the others are, or far off. */
  | { readonly kind: 'clock'; readonly node: number; readonly at: number; readonly aheadMs: number }
  | { readonly kind: 'pause'; readonly process: number; readonly at: number; readonly forMs: number }
  | { readonly kind: 'crash'; readonly process: number; readonly at: number };

export type NodeRestart = Extract<QuorumFault, { kind: 'node-restart' }>;

/** When the faults are over; those that last longer say so. */
export const TROUBLE_MS = 12_000;

/** How far wall clocks are ahead or behind at most, in ms, but for those that are far off: so within a second of each other. */
export const MAX_AHEAD_MS = 400;

/** How far the wall clock of a node that is right enough may be ahead. */
export const aheadMs = (random: Random): number => random.between(-MAX_AHEAD_MS, MAX_AHEAD_MS);

/** The largest number of nodes that a majority of the others outvotes. */
export const minorityOf = (nodes: number): number => Math.ceil(nodes / 2) - 1;

/** Different ones of so many, at random. */
export const someOf = (random: Random, nodes: number, count: number): number[] => {
  const all = Array.from({ length: nodes }, (_, node) => node);
  return Array.from({ length: count }, () => all.splice(random.whole(0, all.length - 1), 1)[0]!);
};

/** At most a minority forgets within the time for which a server stays out. */
export const restarts = (random: Random, nodes: number, watchdogMs: number): NodeRestart[] => {
  const faults: NodeRestart[] = [];
  const minority = minorityOf(nodes);
  let at = random.between(0, 3_000);
  while (at < TROUBLE_MS - 2_000 && random.chance(0.8)) {
    const hit = someOf(random, nodes, random.whole(1, Math.max(1, minority)));
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

/** Any other fault. */
export const otherFault = (random: Random, nodes: number, processes: number): QuorumFault => {
  const at = random.between(0, TROUBLE_MS - 3_000);
  const node = random.whole(0, nodes - 1);
  const process = random.whole(0, processes - 1);
  const forMs = random.pick([5, 50, 400, 2_500]);
  const kind = random.pick([
    'partition',
    'cut',
    'cut',
    'lost-answer',
    'lost-answer',
    'lost-request',
    'repeat',
    'slow',
    'clock',
    'pause',
    'crash',
  ] as const);
  switch (kind) {
    case 'partition':
      return { kind, process, node, at, forMs };
    case 'cut':
      return { kind, process, node, at, lateMs: random.pick([undefined, 10, 150]) };
    case 'lost-answer':
      return { kind, process, node, at };
    case 'lost-request':
      return { kind, process, node, at, after: random.whole(0, 2) };
    case 'repeat':
      return { kind, process, node, at, lateMs: random.pick([1, 20, 150]) };
    case 'slow':
      return { kind, process, node, at, forMs, extraMs: random.pick([30, 90, 250]) };
    case 'clock':
      return { kind, node, at, aheadMs: aheadMs(random) };
    case 'pause':
      return { kind, process, at, forMs: random.pick([20, 300, 1_200, 2_500]) };
    case 'crash':
      return { kind, process, at };
  }
};
