import type { Kind } from './kind.js';

/** Lock with one owner: Redisson's RLock. */
export const exclusive = {
  noun: 'lock',
  singleHolder: true,
  eachQueued: false,
  handedOff: true,
  shared: false,
  fenced: true,
  reentrantInto: ['exclusive', 'fair'],
  downgradesTo: undefined,
  owners: 'counted',
} as const satisfies Kind;
