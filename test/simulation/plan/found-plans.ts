import type { App, LockStep, Plan, Step } from './plan.js';
import { SETTINGS } from './step-plans.js';

/** A section of a caller that waits as long as it has to. */
const section = (
  key: string,
  inside: LockStep['inside'] = [],
  options: Partial<LockStep> = {},
): LockStep => ({
  do: 'lock',
  style: 'withLock',
  keys: [key],
  waitMs: 18_000,
  heedsLoss: false,
  inside,
  ...options,
});

/**
 * Readers share a hold. Two of them have extended it and end at the same moment: the hold is cut twice, and the second
 * cut waits for the first one. The last reader then believes in no more than it has asked for.
 */
const TWO_CUTS: Plan = {
  seed: 16_690,
  settings: { ...SETTINGS, readWrite: true },
  processes: [
    {
      name: 'p1',
      rate: 1,
      callers: [
        {
          startAt: 0,
          steps: [
            {
              do: 'siblings',
              steps: [
                section('a', [{ do: 'sleep', ms: 20 }], { mode: 'read' }),
                section('a', [{ do: 'extend', ms: 700 }], { mode: 'read' }),
                section('a', [{ do: 'extend', ms: 2_100 }], { mode: 'read' }),
              ],
            },
          ],
        },
      ],
    },
  ],
  faults: [],
};

/**
 * A caller waits behind two requests for permits. Its time ends before their replies come: one grants a permit to a
 * caller that has been called off, and the other one is refused.
 */
const BEHIND_A_REFUSAL: Plan = {
  seed: 22_991,
  settings: { ...SETTINGS, latencyMs: [0.2, 20], longestMs: 18_000, permits: [{ key: 'x', says: [2] }] },
  processes: [
    {
      name: 'p1',
      rate: 1,
      callers: [{ startAt: 220, steps: [section('x', [{ do: 'sleep', ms: 40 }], { permits: 2 })] }],
    },
    {
      name: 'p2',
      rate: 1,
      callers: [
        {
          startAt: 0,
          steps: [
            section('x', [], { permits: 2, waitMs: 55, abortAfterMs: 33 }),
            section('x', [], { permits: 2, waitMs: 8 }),
          ],
        },
        { startAt: 0, steps: [section('x', [], { permits: 2 })] },
      ],
    },
  ],
  faults: [{ kind: 'slow', at: 0, process: 'p2', role: 'command', ms: 713, extraMs: 65 }],
};

/** The holder crashes, and when its lease ends the server refuses everything. Its waiter tries again from time to time. */
const FREE_IN_AN_OUTAGE: Plan = {
  seed: 302_212,
  settings: { ...SETTINGS, commandTimeoutMs: 100, latencyMs: [0.2, 0.5] },
  processes: [
    { name: 'p1', rate: 1, callers: [{ startAt: 0, steps: [section('a', [{ do: 'sleep', ms: 3_000 }])] }] },
    { name: 'p2', rate: 1, callers: [{ startAt: 20, steps: [section('a')] }] },
  ],
  faults: [
    { kind: 'crash', at: 100, process: 'p1' },
    { kind: 'server-mood', at: 900, ms: 1_200, mood: 'readonly' },
  ],
};

/** The command connection breaks, and a renewal comes to the server before a forced unlock that was requested earlier. */
const FORCED_WHILE_CUT_OFF: Plan = {
  seed: 6_574,
  settings: SETTINGS,
  processes: [
    {
      name: 'p1',
      rate: 1,
      callers: [
        {
          startAt: 0,
          steps: [
            section('a', [
              { do: 'sleep', ms: 100 },
              { do: 'forceUnlock', key: 'a' },
              { do: 'sleep', ms: 50 },
            ]),
          ],
        },
      ],
    },
  ],
  faults: [{ kind: 'cut', at: 90, process: 'p1', role: 'command' }],
};

/** Small plans of seeds that broke a promise. A change of what seeds generate leaves them as they are. */

/** A caller works in its section through the app, which runs the call of another caller in the context of that section. */
const throughApp = (app: App, startAt: number): Plan => {
  const through = (step: Step): Step => ({ do: 'through', app, step });
  const work = through({ do: 'sleep', ms: 30 });
  const holder = section('a', [{ do: 'sleep', ms: 10 }, work, { do: 'sleep', ms: 60 }]);
  const other = section('a', [{ do: 'sleep', ms: 10 }], { waitMs: 300 });
  const callers = [
    { startAt: 0, steps: [holder] },
    { startAt, steps: [through(other)] },
  ];
  return { seed: 0, settings: SETTINGS, processes: [{ name: 'p1', rate: 1, callers }], faults: [] };
};

/** Small plans that broke a promise. A change of what seeds generate leaves them as they are. */
export const FOUND_PLANS = [
  ['two readers that have extended their shared hold end at once', TWO_CUTS],
  ['a caller waits behind a permit for a caller that has left, and behind a refusal', BEHIND_A_REFUSAL],
  ['the key of a crashed holder becomes free while the server refuses everything', FREE_IN_AN_OUTAGE],
  ['a key is forced open while the connection of its holder is down', FORCED_WHILE_CUT_OFF],
  ['a shared queue starts the call of another caller in a section', throughApp('queue', 25)],
  ['the caller that fills a batch runs the call of another caller in its section', throughApp('batch', 8)],
  ['an event runs the call of another caller in a section', throughApp('emitter', 8)],
] as const;
