import type { Kind } from './kind.js';

/**
 * Shared half of a read-write lock: Redisson's RReadWriteLock. It is reentrant into read and write locks of the same
 * call. A write lock is not reentrant into it: two readers that both want to write would wait for each other.
 */
export const read = {
  noun: 'read lock',
  singleHolder: false,
  eachQueued: false,
  handedOff: false,
  shared: true,
  fenced: false,
  reentrantInto: ['read', 'write'],
  downgradesTo: undefined,
  owners: 'counted',
} as const satisfies Kind;
