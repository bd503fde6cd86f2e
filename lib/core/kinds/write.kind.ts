import type { Kind } from './kind.js';

/** Half of a read-write lock that excludes all others. While it is held, it can be downgraded to a read lock. */
export const write = {
  noun: 'write lock',
  singleHolder: true,
  eachQueued: false,
  handedOff: true,
  shared: false,
  fenced: true,
  reentrantInto: ['write'],
  downgradesTo: 'read',
  owners: 'counted',
} as const satisfies Kind;
