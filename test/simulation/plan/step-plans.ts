import type { Fault, LockStep, Plan, PlanSettings, Step } from './plan.js';

/** How long the process stands still: less than a lease, longer than one renewal leaves of it, longer than any. */
const PAUSES_MS = [300, 700, 900, 1_300, 2_500];

export const SETTINGS: PlanSettings = {
  watchdogMs: 1_000,
  commandTimeoutMs: 200,
  latencyMs: [0.2, 1.5],
  maxWaiters: null,
  shutdownGraceMs: 50,
  mayKill: true,
  longestMs: 1_500,
  permits: [],
  misdeeds: [],
};

/**
 * Two processes that want the same key, with what there is to do in a lease: renewals, an extension, a nested lock,
 * updates. What goes wrong is left to the caller.
 */
export const CALM_PLAN: Plan = {
  seed: 0,
  settings: SETTINGS,
  processes: ['p1', 'p2'].map((name, i) => ({
    name,
    rate: 1,
    callers: [
      {
        startAt: i * 40,
        steps: [
          {
            do: 'lock',
            style: i === 0 ? 'withLock' : 'run',
            keys: ['a'],
            waitMs: 6_000,
            heedsLoss: i === 0,
            inside: [
              { do: 'update', key: 'a', thinkMs: 5, slowMs: 0 },
              { do: 'sleep', ms: 500 },
              {
                do: 'lock',
                style: 'withLock',
                keys: ['a'],
                waitMs: 100,
                heedsLoss: true,
                inside: [{ do: 'update', key: 'a', thinkMs: 0, slowMs: 0 }],
              },
              { do: 'extend', ms: 1_500 },
              { do: 'sleep', ms: 700 },
              { do: 'update', key: 'a', thinkMs: 0, slowMs: 0 },
            ],
          },
        ],
      },
      {
        startAt: 20,
        steps: [
          {
            do: 'lock',
            style: 'acquire',
            keys: ['b', 'a'],
            waitMs: 4_000,
            leaseMs: 400,
            heedsLoss: true,
            inside: [{ do: 'update', key: 'a', thinkMs: 5, slowMs: 0 }],
          },
        ],
      },
    ],
  })),
  faults: [],
};

const permitStep = (step: Pick<LockStep, 'style' | 'inside'> & Partial<LockStep>): LockStep => ({
  do: 'lock',
  keys: ['x'],
  permits: 2,
  waitMs: 6_000,
  heedsLoss: true,
  ...step,
});

/**
 * Three callers in each of two processes for two permits, with what there is to do in one: renewals, an extension, a
 * fixed lease, a minimum time, a wait behind others of the same process and of the other.
 */
export const CALM_PERMIT_PLAN: Plan = {
  seed: 0,
  settings: { ...SETTINGS, permits: [{ key: 'x', says: [2, null] }] },
  processes: ['p1', 'p2'].map((name, i) => ({
    name,
    rate: 1,
    callers: [
      {
        startAt: i * 40,
        steps: [
          permitStep({
            style: i === 0 ? 'withLock' : 'run',
            heedsLoss: i === 0,
            inside: [
              { do: 'sleep', ms: 500 },
              { do: 'extend', ms: 1_500 },
              { do: 'sleep', ms: 700 },
            ],
          }),
        ],
      },
      {
        startAt: 20,
        steps: [
          permitStep({ style: 'acquire', leaseMs: 400, inside: [{ do: 'sleep', ms: 100 }] }),
          permitStep({ style: 'withLock', holdAtLeastMs: 200, inside: [{ do: 'sleep', ms: 20 }] }),
        ],
      },
      {
        startAt: 60,
        steps: [permitStep({ style: 'tryAcquire', permits: null, inside: [{ do: 'verify' }] })],
      },
    ],
  })),
  faults: [],
};

const lockStep = (step: Pick<LockStep, 'mode' | 'style' | 'inside'> & Partial<LockStep>): LockStep => ({
  do: 'lock',
  keys: ['a'],
  waitMs: 6_000,
  heedsLoss: true,
  ...step,
});

const UPDATE: Step = { do: 'update', key: 'a', thinkMs: 5, slowMs: 0 };

/**
 * Two processes that read and write the same key: readers that share a hold, and one of their own; a writer that waits for
 * readers of both, and readers behind it; a read lock inside a write lock; a key to read and one to write.
 */
export const CALM_READ_WRITE_PLAN: Plan = {
  seed: 0,
  settings: { ...SETTINGS, readWrite: true },
  processes: ['p1', 'p2'].map((name, i) => ({
    name,
    rate: 1,
    callers: [
      {
        startAt: i * 10,
        steps: [
          lockStep({ mode: 'read', style: 'withLock', inside: [{ do: 'sleep', ms: 300 }] }),
          lockStep({ mode: 'read', style: 'run', leaseMs: 400, inside: [{ do: 'sleep', ms: 50 }] }),
        ],
      },
      {
        startAt: 25,
        steps: [
          lockStep({
            mode: 'read',
            modes: i === 0 ? undefined : ['read', 'write'],
            style: 'acquire',
            keys: i === 0 ? ['a'] : ['b', 'a'],
            inside: [{ do: 'sleep', ms: 100 }],
          }),
        ],
      },
      {
        startAt: 120,
        steps: [
          lockStep({
            mode: 'write',
            style: i === 0 ? 'withLock' : 'run',
            heedsLoss: i === 0,
            inside: [
              UPDATE,
              lockStep({ mode: 'read', style: 'withLock', inside: [{ do: 'sleep', ms: 400 }] }),
              UPDATE,
            ],
          }),
        ],
      },
    ],
  })),
  faults: [],
};

/**
 * Two callers in each of two processes at a semaphore of two permits and at a latch: they wait behind others of the same
 * process and of the other, one goes away while it waits, and one waits in vain.
 */
export const CALM_OBJECT_PLAN: Plan = {
  seed: 0,
  settings: SETTINGS,
  processes: ['p1', 'p2'].map((name, i) => ({
    name,
    rate: 1,
    callers: [
      {
        startAt: i * 30,
        steps: [
          { do: 'work', key: 'gate', of: 2, permits: 1, waitMs: 3_000, workMs: 120 },
          { do: 'meet', key: 'door', count: 3, waitMs: 2_000 },
          { do: 'work', key: 'gate', of: 2, permits: 2, waitMs: 3_000, workMs: 40 },
        ],
      },
      {
        startAt: 15 + i * 30,
        steps: [
          { do: 'work', key: 'gate', of: 2, permits: 1, waitMs: 3_000, workMs: 60 },
          { do: 'work', key: 'gate', of: 2, permits: 2, waitMs: 3_000, abortAfterMs: 80, workMs: 40 },
          { do: 'meet', key: 'door', count: 3, waitMs: 500 },
          { do: 'work', key: 'gate', of: 2, permits: 1, waitMs: 10, workMs: 40 },
        ],
      },
    ],
  })),
  faults: [],
};

/**
 * Yields the plan with one process stopped for a while, or crashed, at each of its steps in turn.
 *
 * @param isWhole whether each step has a crash and each pause; otherwise every fifth step has one of them, in turn
 */
export function* plansForEachStep(
  plan: Plan,
  steps: ReadonlyMap<string, number>,
  isWhole = true,
): Generator<Plan> {
  for (const [process, count] of steps) {
    for (let step = 1; step <= count; step += isWhole ? 1 : 5) {
      const faults: Fault[] = [
        { kind: 'crash-step', process, step },
        ...PAUSES_MS.map((ms): Fault => ({ kind: 'freeze-step', process, step, ms })),
      ];
      const chosen = isWhole ? faults : [faults[step % faults.length]!];
      for (const fault of chosen) yield { ...plan, faults: [fault] };
    }
  }
}
