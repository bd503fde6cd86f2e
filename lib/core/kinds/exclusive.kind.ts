import type { Kind } from './kind.js';

/** A lock with one owner: Redisson's RLock. */
export const exclusive = {
  noun: 'lock',
  alone: true,
  handedOver: true,
  fenced: true,
  entersInto: ['exclusive'],
  owners: 'counted',
} as const satisfies Kind;
