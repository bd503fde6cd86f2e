import type { Kind } from './kind.js';

/**
 * A lock with one owner that is given in the order in which callers came, over all processes: Redisson's RFairLock. Its
 * hold is that of an exclusive lock, so each goes into the other.
 */
export const fair = {
  noun: 'lock',
  alone: true,
  eachInLine: true,
  handedOver: false,
  shared: false,
  fenced: true,
  entersInto: ['fair', 'exclusive'],
  waitsForItselfIn: ['read', 'write'],
  becomes: undefined,
  owners: 'named',
} as const satisfies Kind;
