import { Random } from '../engine/random.js';
import { anyFault, TROUBLE_MS, unknownOutcome, type Cast, type ZkFault } from './zk-faults.js';

/** One try of a caller. */
export interface ZkVisit {
  readonly key: string;
  readonly kind: 'exclusive' | 'permit' | 'read' | 'write';
  /** How many permits there are, of permits. */
  readonly permits?: number;
  readonly thinkMs: number;
  readonly waitMs: number;
  /** How long it works inside. */
  readonly workMs: number;
  /** After this time its caller gives up. */
  readonly abortMs?: number;
  /** A fixed lease. */
  readonly leaseMs?: number;
  /** A writer becomes a reader after half of its work. */
  readonly downgrades: boolean;
}

export interface ZkPlan {
  readonly seed: number;
  readonly servers: number;
  /** How fast the clocks of the servers run. */
  readonly rate: number;
  readonly processes: readonly {
    readonly rate: number;
    readonly callers: readonly (readonly ZkVisit[])[];
  }[];
  /** Time-out of the sessions, which is the length of the leases, too. */
  readonly sessionMs: number;
  readonly reportMs: number;
  readonly sweepMs: number;
  /** See `EnsembleTerms`. */
  readonly tellsLate: boolean;
  readonly commandTimeoutMs: number;
  readonly latencyMs: readonly [number, number];
  /** What the waiter of the finale loses: its connection while it waits, or when the key is released. */
  readonly waiterLoses: 'connection' | 'event' | undefined;
  readonly faults: readonly ZkFault[];
  /** When the last fault is over. */
  readonly troubleMs: number;
}

const KINDS = [
  ['exclusive'],
  ['read', 'write'],
  ['exclusive', 'read', 'write'],
  ['permit'],
  ['exclusive', 'permit'],
] as const;
/** The key that has permits. */
const PERMITS_KEY = 'permits';
const PERMITS = 2;

/** From a seed to a plan, as plain data. */
export const zkPlan = (seed: number): ZkPlan => {
  const random = new Random(`zookeeper ${seed}`);
  const keys = random.pick([['a'], ['a', 'b']]);
  const kinds = random.pick(KINDS);
  const visit = (): ZkVisit => {
    const kind = random.pick(kinds);
    const waitMs = random.pick([0, 100, 1_000, 5_000]);
    return {
      key: kind === 'permit' ? PERMITS_KEY : random.pick(keys),
      kind,
      ...(kind === 'permit' && { permits: PERMITS }),
      waitMs,
      thinkMs: random.pick([0, 1, 5, 50, 300]),
      workMs: random.pick([0, 1, 5, 20, 20, 200, 1_200, 2_500]),
      ...(random.chance(0.1) && { abortMs: random.between(0, 300) }),
      ...(random.chance(0.1) && { leaseMs: random.pick([50, 400]) }),
      downgrades: kind === 'write' && random.chance(0.3),
    };
  };
  const caller = (): ZkVisit[] => Array.from({ length: random.whole(2, 6) }, visit);
  const processes = Array.from({ length: random.whole(2, 4) }, () => ({
    rate: random.between(0.998, 1.002),
    callers: Array.from({ length: random.whole(1, 3) }, caller),
  }));
  const sessionMs = random.pick([1_000, 1_200, 3_000]);
  const servers = random.pick([1, 3, 3]);
  const cast: Cast = { processes: processes.length, servers, keys, sessionMs };
  const ofAll = (kinds as readonly string[]).includes('permit')
    ? { ...cast, keys: [...keys, PERMITS_KEY] }
    : cast;
  const scenes = Array.from({ length: random.whole(0, 3) }, () => unknownOutcome(random, cast));
  const others = Array.from({ length: random.whole(0, 6) }, () => anyFault(random, ofAll));
  const alone = random.pick([leftAlone, stalled, undefined, undefined])?.(random, cast) ?? [];
  alone.forEach(({ visit: its }, p) => processes[p]!.callers.push([its]));
  const faults = [...scenes.flat(), ...others, ...alone.flatMap(({ faults: its }) => its)];
  return {
    ...{ seed, servers, processes, sessionMs, faults },
    rate: random.between(0.999, 1.001),
    // As servers do it with ticks of half the session: twice in each.
    reportMs: sessionMs * random.pick([0.05, 0.25]),
    tellsLate: true,
    sweepMs: random.pick([50, 200, 2_000]),
    commandTimeoutMs: random.pick([400, 1_000, 4_000]),
    latencyMs: random.pick([
      [0.2, 0.6],
      [0.5, 3],
      [1, 20],
    ] as const),
    waiterLoses: random.pick([undefined, 'connection', 'event'] as const),
    troubleMs: Math.max(
      TROUBLE_MS,
      ...faults.map((fault) => fault.at + ('forMs' in fault ? fault.forMs : 0)),
    ),
  };
};

/** A caller of one process, and what goes wrong meanwhile. */
interface Role {
  readonly visit: ZkVisit;
  readonly faults: readonly ZkFault[];
}

const forLong = (key: string) => ({ key, kind: 'exclusive', waitMs: 20_000, downgrades: false }) as const;

/** A holder reaches no server any more, and another process waits for its key. */
const leftAlone = (random: Random, { keys, sessionMs }: Cast): readonly Role[] => {
  const common = forLong(random.pick(keys));
  const at = sessionMs * random.between(0.3, 2);
  const forMs = sessionMs * random.pick([1.1, 2]);
  const lateMs = sessionMs * random.pick([0, 0.3, 0.3]);
  return [
    {
      visit: { ...common, thinkMs: 0, workMs: 4 * sessionMs },
      faults: [{ kind: 'unreported', at, process: 0, forMs, lateMs }],
    },
    { visit: { ...common, thinkMs: sessionMs * 0.2, workMs: 20 }, faults: [] },
  ];
};

/** A process stands still for nearly as long as its session, and then acquires a key for which another one waits. */
const stalled = (random: Random, { keys, sessionMs }: Cast): readonly Role[] => {
  const common = forLong(random.pick(keys));
  const at = sessionMs * random.between(0.5, 3);
  const forMs = sessionMs * random.between(0.7, 1.05);
  return [
    {
      visit: { ...common, thinkMs: at + forMs / 2, workMs: 2 * sessionMs },
      faults: [{ kind: 'pause', at, process: 0, forMs }],
    },
    { visit: { ...common, thinkMs: at + forMs + sessionMs * 0.05, workMs: 20 }, faults: [] },
  ];
};
