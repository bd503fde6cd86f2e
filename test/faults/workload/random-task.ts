import type { Random } from '../../simulation/engine/random.js';
import type { Mode } from '../../checker/history.js';
import type { OtherKind } from './worker-messages.js';
import { FAIR_KEY, permitsKey, type FairStyle, type Step, type Style, type Task } from './task.js';

/** Which keys there are. */
export interface Keys {
  readonly hotKeys: number;
  readonly coldKeys: number;
  /** What is taken beside exclusive locks. */
  readonly kinds: readonly OtherKind[];
  /** Whether a lock may be held for a minimum time. */
  readonly minimum: boolean;
}

const PROBE = 'probe-';

/** No hold stays longer than this after early work. */
export const LONGEST_MINIMUM_MS = 200;

/** A lock that nobody else wants, taken to see how long that takes. */
export const probe = (name: string): Task => ({
  style: 'withLock',
  keys: [`${PROBE}${name}`],
  waitMs: 1_000,
  steps: [],
});

/** Whether a final key is that of a probe. */
export const isProbe = (key: string): boolean => key.includes(`:${PROBE}`);

const keyOf = (random: Random, { hotKeys, coldKeys }: Keys): string => {
  const kind = random.next();
  if (kind < 0.6) return `hot-${random.whole(1, hotKeys)}`;
  return kind < 0.9 ? `cold-${random.whole(1, coldKeys)}` : `once-${random.whole(1, 1_000_000_000)}`;
};

/** One of many who come in the same moment, each for a key of its own choice. */
export const crowdTask = (random: Random, keys: Keys): Task => {
  const key = keyOf(random, keys);
  return { style: 'withLock', keys: [key], waitMs: waitOf(random), steps: [write(random, key)] };
};

const LONG_KEYS = 4;

/** Keeps a lock that many want, and then begins a section in it. A server may fail meanwhile. */
export const longTask = (random: Random, keptForMs: number): Task => {
  const key = `long-${random.whole(1, LONG_KEYS)}`;
  const pauseMs = random.whole(200, keptForMs);
  return {
    style: 'withLock',
    keys: [key],
    waitMs: 2_000,
    steps: [{ do: 'write', key, pauseMs }, { do: 'run' }],
  };
};

/** Two that differ, in the order in which everybody takes them. */
const pairOf = (random: Random, keys: Keys): string[] => {
  const first = keyOf(random, keys);
  for (;;) {
    const second = keyOf(random, keys);
    if (second !== first) return [first, second].sort();
  }
};

const waitOf = (random: Random): number => {
  const kind = random.next();
  if (kind < 0.2) return random.whole(0, 60);
  return kind < 0.7 ? random.whole(100, 900) : random.whole(1_500, 3_000);
};

/** Mostly short; now and then longer than a lease. */
const workMs = (random: Random): number => {
  const kind = random.next();
  if (kind < 0.95) return random.whole(0, 8);
  return kind < 0.995 ? random.whole(10, 80) : random.whole(1_200, 1_900);
};

const write = (random: Random, key: string): Step => ({ do: 'write', key, pauseMs: workMs(random) });

const abortOf = (random: Random): Pick<Task, 'abortAfterMs'> =>
  random.chance(0.15) ? { abortAfterMs: random.whole(1, 120) } : {};

const leaseOf = (random: Random): Pick<Task, 'leaseMs'> =>
  random.chance(0.25) ? { leaseMs: random.whole(60, 600) } : {};

/**
 * Inside a lock: the same key again, one after the other or as siblings, or another one. A task that does not say that it
 * is nested waits for the lock around it, in vain, and briefly.
 */
const nested = (random: Random, key: string, keys: Keys): Step => {
  const again = (): Task => {
    const task = { keys: [key], steps: [write(random, key)] };
    const kind = random.next();
    if (kind < 0.2) return { ...task, style: 'locked', waitMs: null };
    if (kind < 0.35) return { ...task, style: 'withLock', waitMs: random.whole(0, 60), ordinary: true };
    return { ...task, style: 'withLock', waitMs: waitOf(random) };
  };
  const kind = random.next();
  if (kind < 0.3) return { do: 'nest', tasks: [again()] };
  if (kind < 0.6) return { do: 'nest', tasks: [again(), { ...again(), style: 'acquire' }, again()] };
  const other = keyOf(random, keys);
  // Only upwards: what is taken in another order can deadlock, and then waits for as long as it may.
  if (other <= key) return { do: 'nest', tasks: [again()] };
  return {
    do: 'nest',
    tasks: [
      { style: 'withLock', keys: [other], waitMs: random.whole(0, 300), steps: [write(random, other)] },
      again(),
    ],
  };
};

/** What nobody should do with a lock, but what a program can do. */
const misuse = (random: Random, key: string, keys: Keys): Step[] => {
  const kind = random.next();
  if (kind < 0.15) return [{ do: 'release' }, { do: 'ask' }];
  if (kind < 0.45) {
    // Given back while some are inside and others wait to go in.
    const release: Step[] = [{ do: 'pause', ms: random.whole(0, 6) }, { do: 'release' }];
    return [{ do: 'beside', steps: [nested(random, key, keys), { do: 'in-turn', steps: release }] }];
  }
  if (kind < 0.65) return [{ do: 'extend', ms: 2_500 }, { do: 'release' }];
  if (kind < 0.75) return [{ do: 'forceUnlock', key }, { do: 'ask' }];
  if (kind < 0.85) return [{ do: 'beside', steps: [{ do: 'forceUnlock', key }, write(random, key)] }];
  const again: Task = { style: 'withLock', keys: [key], waitMs: waitOf(random), steps: [] };
  return [
    { do: 'block', ms: random.whole(10, 120) },
    random.chance(0.5) ? { do: 'nest', tasks: [again] } : { do: 'run' },
  ];
};

/** What a caller goes on doing with a lease that is over. */
const aftermath = (random: Random): Pick<Task, 'after'> =>
  random.chance(0.15)
    ? {
        after: [
          random.pick<Step>([{ do: 'extend', ms: 2_500 }, { do: 'release' }]),
          random.pick<Step>([{ do: 'ask' }, { do: 'run' }, { do: 'extend', ms: 2_500 }]),
        ],
      }
    : {};

const stepsOf = (random: Random, key: string, keys: Keys): Step[] => {
  const steps: Step[] = [write(random, key)];
  if (random.chance(0.15)) steps.push(nested(random, key, keys));
  if (random.chance(0.05)) steps.push({ do: 'extend', ms: random.whole(100, 2_500) });
  if (random.chance(0.08)) steps.push(...misuse(random, key, keys));
  if (random.chance(0.2)) steps.push(write(random, key));
  return steps;
};

/** A caller of any style, over hot keys, cold ones, and some that nobody uses twice. */
export const randomTask = (random: Random, keys: Keys): Task => ({
  ...(keys.kinds.includes('permit') && random.chance(0.12)
    ? permitTask(random, keys)
    : ofOneKind(random, keys, wellMeant(random, keys))),
  ...aftermath(random),
});

const ofOneKind = (random: Random, { kinds }: Keys, task: Task): Task => {
  const one = kinds.includes('fair') ? orFair(random, task) : task;
  return one === task && kinds.includes('read-write') ? orReadWrite(random, task) : one;
};

/** The read-write lock that all callers of a round share. */
const READ_WRITE_KEY = 'shared-1';
const READERS = 0.6;

/** The same for a read-write lock, now and then; inside it, now and then once more to read or to write. */
const orReadWrite = (random: Random, task: Task): Task => {
  const { style, keys, steps } = task;
  if (keys.length > 1 || !isFairOne(style) || !random.chance(0.2)) return task;
  const mode = random.chance(READERS) ? 'read' : 'write';
  const inside = (how: Mode): Step[] =>
    steps.flatMap((step): Step[] => {
      if (step.do === 'extend') return [step];
      if (step.do !== 'write') return [];
      // Who reads has no token that the register could ask for.
      return [how === 'write' ? { ...step, key: READ_WRITE_KEY } : { do: 'pause', ms: step.pauseMs }];
    });
  const own = inside(mode);
  if (random.chance(0.15)) {
    const nestedMode = random.chance(READERS) ? 'read' : 'write';
    const nested: Task = {
      style: 'withLock',
      mode: nestedMode,
      keys: [READ_WRITE_KEY],
      waitMs: waitOf(random),
      steps: [{ do: 'pause', ms: workMs(random) }],
    };
    own.push({ do: 'nest', tasks: random.chance(0.5) ? [nested] : [nested, nested] });
  }
  if (mode === 'write' && random.chance(0.2))
    own.push({ do: 'downgrade' }, { do: 'pause', ms: workMs(random) });
  if (random.chance(0.04)) own.push({ do: 'forceUnlock', key: READ_WRITE_KEY }, { do: 'ask' });
  return { ...task, mode, keys: [READ_WRITE_KEY], steps: own };
};

/** The same for a fair lock, now and then. */
const orFair = (random: Random, task: Task): Task => {
  const { style, keys, steps } = task;
  if (keys.length > 1 || !isFairOne(style) || !random.chance(0.2)) return task;
  const own = steps
    .filter(({ do: what }) => what === 'write' || what === 'extend')
    .map((step) => (step.do === 'write' ? { ...step, key: FAIR_KEY } : step));
  return { ...task, style: FAIR[style], keys: [FAIR_KEY], steps: own };
};

/** One of few permits, which many want. */
const permitTask = (random: Random, keys: Keys): Task => {
  const permits = random.whole(1, 3);
  const key = permitsKey(permits);
  const steps: Step[] = [{ do: 'pause', ms: workMs(random) }];
  const inner = keyOf(random, keys);
  if (random.chance(0.2)) {
    const task: Task = {
      style: 'withLock',
      keys: [inner],
      waitMs: random.whole(0, 300),
      steps: [write(random, inner)],
    };
    steps.push({ do: 'nest', tasks: [task] });
  }
  if (random.chance(0.1)) steps.push({ do: 'extend', ms: random.whole(100, 2_500) });
  if (random.chance(0.1)) {
    steps.push(
      ...random.pick<Step[]>([
        [{ do: 'release' }, { do: 'ask' }],
        [{ do: 'extend', ms: 2_500 }, { do: 'release' }],
        [{ do: 'forceUnlock', key }, { do: 'ask' }],
        [{ do: 'block', ms: random.whole(10, 120) }, { do: 'run' }],
      ]),
    );
  }
  const task = { keys: [key], permits, ...leaseOf(random), steps };
  const waitMs = waitOf(random);
  const kind = random.next();
  if (kind < 0.5) return { ...task, style: 'withPermit', waitMs, ...abortOf(random) };
  if (kind < 0.8) return { ...task, style: 'acquirePermit', waitMs, ...abortOf(random) };
  return { ...task, style: 'tryAcquirePermit', waitMs: random.pick([0, 0, 50]) };
};

/** The styles that a fair lock is taken in. */
const FAIR = {
  withLock: 'withLock, fair',
  acquire: 'acquire, fair',
  tryAcquire: 'tryAcquire, fair',
  locked: 'locked, fair',
} as const satisfies Partial<Record<Style, FairStyle>>;

const isFairOne = (style: Style): style is keyof typeof FAIR => style in FAIR;

const wellMeant = (random: Random, keys: Keys): Task => {
  const key = keyOf(random, keys);
  const steps = stepsOf(random, key, keys);
  const waitMs = waitOf(random);
  const kind = random.next();
  if (kind < 0.22) {
    return { style: 'withLock', keys: [key], waitMs, ...leaseOf(random), ...abortOf(random), steps };
  }
  if (kind < 0.4) {
    return { style: 'acquire', keys: [key], waitMs, ...leaseOf(random), ...abortOf(random), steps };
  }
  if (kind < 0.5) return { style: 'tryAcquire', keys: [key], waitMs: random.pick([0, 0, 50]), steps };
  if (kind < 0.53 && keys.minimum) {
    const holdAtLeastMs = random.whole(30, LONGEST_MINIMUM_MS);
    return { style: 'withLock', keys: [key], waitMs, holdAtLeastMs, steps: [write(random, key)] };
  }
  if (kind < 0.7) return { style: 'locked', keys: [key], waitMs: null, steps };
  if (kind < 0.78) return { style: 'locked, fixed', keys: [key], waitMs: null, steps };
  if (kind < 0.85) return { style: 'locked, skip', keys: [key], waitMs: null, steps };
  const pair = pairOf(random, keys);
  const writes = pair.map((one) => write(random, one));
  if (kind < 0.93) {
    return { style: 'withLock', keys: pair, waitMs, ...leaseOf(random), ...abortOf(random), steps: writes };
  }
  return { style: 'locked, two keys', keys: pair, waitMs: null, steps: writes };
};
