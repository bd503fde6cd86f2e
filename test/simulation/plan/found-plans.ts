import type { LockStep, Plan } from './plan.js';
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

/** Small plans of seeds that broke a promise. A change of what seeds generate leaves them as they are. */
export const FOUND_PLANS = [
  ['two readers that have extended their shared hold end at once', TWO_CUTS],
] as const;
