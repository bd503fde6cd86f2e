import type { Random } from '../engine/random.js';
import type { MessageName } from './protocol.js';

/** A fault of a process, or of its network. */
type ProcessFault =
  /** The next message of this name gets lost: before the server has it, or the reply to it. */
  | { readonly kind: 'lost-request' | 'lost-reply'; readonly of: MessageName; readonly isNoticed: boolean }
  /** The connection breaks. What is on its way to the server arrives later, or never. */
  | { readonly kind: 'cut'; readonly lateMs: number | undefined; readonly step?: number }
  /** The connection is half-open: nothing gets through any more, and neither end notices. */
  | { readonly kind: 'mute'; readonly step?: number }
  /** Nothing gets through for a time; what was on its way comes after that. */
  | { readonly kind: 'silence'; readonly forMs: number; readonly step?: number }
  | { readonly kind: 'slow'; readonly forMs: number; readonly extraMs: number }
  | { readonly kind: 'pause'; readonly forMs: number; readonly step?: number }
  | { readonly kind: 'crash'; readonly step?: number }
  /** The app shuts down, with all that runs in it. */
  | { readonly kind: 'close'; readonly step?: number }
  /** The process forces a key open. */
  | { readonly kind: 'force'; readonly key: string };

/** A fault of the ensemble. */
type EnsembleFault =
  /** No server accepts connections. The open ones go on. */
  | { readonly kind: 'refuse'; readonly forMs: number }
  | { readonly kind: 'election'; readonly forMs: number }
  | { readonly kind: 'server-dies'; readonly server: number; readonly forMs: number }
  | { readonly kind: 'server-pauses'; readonly server: number; readonly forMs: number }
  /** Changes come late to a server. */
  | { readonly kind: 'lag'; readonly server: number; readonly forMs: number; readonly lagMs: number }
  | { readonly kind: 'sweep' }
  /** An administrator deletes the first node of a key. */
  | { readonly kind: 'delete'; readonly key: string }
  /** The server of a process dies just after a sync, and the process cannot reach any other one. The reply comes late. */
  | {
      readonly kind: 'unreported';
      readonly process: number;
      readonly forMs: number;
      readonly lateMs: number;
    };

/** What goes wrong. Times in ms since the beginning. */
export type ZkFault = { readonly at: number } & (
  EnsembleFault | (ProcessFault & { readonly process: number })
);

/** When the faults are over; longer ones say so. */
export const TROUBLE_MS = 8_000;

export interface Cast {
  readonly processes: number;
  readonly servers: number;
  readonly keys: readonly string[];
  readonly sessionMs: number;
}

const MESSAGES = [
  ...(['create', 'create', 'create', 'delete', 'delete', 'getData', 'getData', 'getChildren'] as const),
  ...(['sync', 'sync', 'setWatches', 'createContainer', 'hello', 'close'] as const),
] as const;

/** More faults at the beginning, when most callers are at work. */
const timeOf = (random: Random): number => random.between(0, random.pick([500, 2_000, TROUBLE_MS - 2_500]));

/** Any fault. */
export const anyFault = (random: Random, { processes, servers, keys, sessionMs }: Cast): ZkFault => {
  const at = timeOf(random);
  const process = random.whole(0, processes - 1);
  const server = random.whole(0, servers - 1);
  const step = random.chance(0.7) ? { step: random.whole(1, 1_500) } : {};
  const key = random.pick(keys);
  // Sessions end after some of these.
  const longMs = sessionMs * random.pick([0.2, 0.5, 0.7, 0.85, 0.95, 1.02, 1.2, 2]);
  const kind = random.pick([
    ...(['lost-request', 'lost-reply', 'lost-reply', 'cut', 'cut', 'mute', 'silence', 'silence'] as const),
    ...(['slow', 'pause', 'pause', 'crash', 'close', 'force', 'refuse', 'election'] as const),
    ...([
      'server-dies',
      'server-pauses',
      'lag',
      'lag',
      'sweep',
      'delete',
      'unreported',
      'unreported',
    ] as const),
  ]);
  switch (kind) {
    case 'lost-request':
    case 'lost-reply':
      return { kind, at, process, of: random.pick(MESSAGES), isNoticed: random.chance(0.6) };
    case 'cut':
      return { kind, at, process, lateMs: random.pick([undefined, 10, 300]), ...step };
    case 'mute':
      return { kind, at, process, ...step };
    case 'silence':
    case 'pause':
      return { kind, at, process, forMs: random.pick([20, longMs, longMs]), ...step };
    case 'slow':
      return { kind, at, process, forMs: longMs, extraMs: random.pick([30, 90, 250]) };
    case 'crash':
    case 'close':
      return { kind, at, process, ...step };
    case 'force':
      return { kind, at, process, key };
    case 'refuse':
    case 'election':
      return { kind, at, forMs: random.pick([100, longMs]) };
    case 'server-dies':
    case 'server-pauses':
      return { kind, at, server, forMs: random.pick([5, 100, sessionMs * 0.3]) };
    case 'lag':
      return { kind, at, server, forMs: random.pick([200, 2_000]), lagMs: random.pick([20, 100, 400]) };
    case 'sweep':
      return { kind, at };
    case 'delete':
      return { kind, at, key };
    case 'unreported':
      return {
        ...{ kind, at, process },
        forMs: sessionMs * random.pick([1.1, 2]),
        lateMs: sessionMs * random.pick([0, 0.3]),
      };
  }
};

/** A create or a delete whose outcome is unknown, and an undo that meets further faults. */
export const unknownOutcome = (random: Random, { processes, servers }: Cast): ZkFault[] => {
  const at = timeOf(random);
  const process = random.whole(0, processes - 1);
  const isNoticed = random.chance(0.7);
  const of = random.pick(['create', 'create', 'delete'] as const);
  const server = random.whole(0, servers - 1);
  const first: ZkFault = random.pick<ZkFault>([
    { kind: 'lost-reply', at, process, of, isNoticed },
    { kind: 'cut', at, process, lateMs: random.pick([1, 20, 200]), step: random.whole(20, 800) },
  ]);
  const others: readonly ZkFault[] = [
    { kind: 'lag', at: at - 200, server, forMs: 2_000, lagMs: random.pick([50, 300]) },
    {
      kind: 'lag',
      at: at - 200,
      server: (server + 1) % servers,
      forMs: 2_000,
      lagMs: random.pick([50, 300]),
    },
    { kind: 'lost-request', at, process, of: 'sync', isNoticed },
    { kind: 'lost-reply', at, process, of: random.pick(['delete', 'getChildren']), isNoticed },
    { kind: 'refuse', at: at + 1, forMs: random.between(50, 1_500) },
  ];
  return [first, ...others.filter(() => random.chance(0.4))];
};
