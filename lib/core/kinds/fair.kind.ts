import type { Kind } from './kind.js';

/**
 * Lock with one owner, granted in the order of the requests over all processes: Redisson's RFairLock. Its hold is an
 * exclusive hold, so each of the two kinds is reentrant into the other.
 */
export const fair = {
  noun: 'lock',
  singleHolder: true,
  eachQueued: true,
  handedOff: false,
  shared: false,
  fenced: true,
  reentrantInto: ['fair', 'exclusive'],
  downgradesTo: undefined,
  owners: 'named',
} as const satisfies Kind;
