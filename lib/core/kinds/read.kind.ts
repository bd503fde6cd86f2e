import type { Kind } from './kind.js';

/**
 * Shared half of a read-write lock: Redisson's RReadWriteLock. It is reentrant into read and write locks of the same
 * call. A write lock is not reentrant into it: two readers that both want to write would wait for each other.
 */
export const read = {
  noun: 'read lock',
  alone: false,
  eachInLine: false,
  handedOver: false,
  shared: true,
  fenced: false,
  entersInto: ['read', 'write'],
  waitsForItselfIn: ['exclusive', 'fair'],
  becomes: undefined,
  owners: 'counted',
} as const satisfies Kind;
