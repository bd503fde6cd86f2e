import type { Plan } from './plan.js';

/** How long the process stands still: less than a lease, longer than one renewal leaves of it, longer than any. */
const PAUSES_MS = [300, 700, 900, 1_300, 2_500];

/**
 * Two processes that want the same key, with what there is to do in a lease: renewals, an extension, a nested lock,
 * updates. What goes wrong is left to the caller.
 */
export const CALM_PLAN: Plan = {
  seed: 0,
  settings: {
    watchdogMs: 1_000,
    commandTimeoutMs: 200,
    pingMs: 400,
    latencyMs: [0.2, 1.5],
    maxWaiters: null,
    shutdownGraceMs: 50,
    mayKill: true,
    longestMs: 1_500,
    permits: [],
    misdeeds: [],
  },
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

/** The plan with one process stopped for a while, or crashed, at each of its steps in turn. */
export function* plansForEachStep(plan: Plan, steps: ReadonlyMap<string, number>): Generator<Plan> {
  for (const [process, count] of steps) {
    for (let step = 1; step <= count; step++) {
      yield { ...plan, faults: [{ kind: 'crash-step', process, step }] };
      for (const ms of PAUSES_MS) yield { ...plan, faults: [{ kind: 'freeze-step', process, step, ms }] };
    }
  }
}
