import type { Kind } from './kind.js';

/**
 * Lock with one owner, granted in the order of the requests over all processes: Redisson's RFairLock. Its hold is an
 * exclusive hold, so each of the two kinds is reentrant into the other.
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
