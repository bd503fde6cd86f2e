import type { Kind } from './kind.js';

/** A lock with one owner: Redisson's RLock. */
export const exclusive = {
  alone: true,
  handedOver: true,
  fenced: true,
  entersInto: ['exclusive'],
  owners: 'counted',
} as const satisfies Kind;
