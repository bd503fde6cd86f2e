import type { Kind } from './kind.js';

/**
 * The shared half of a read-write lock: Redisson's RReadWriteLock. It goes into itself and into a write lock of the same
 * call, but no write lock goes into it: two readers that both want to write would wait for each other.
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
