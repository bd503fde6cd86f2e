import type { Kind } from './kind.js';

/** Half of a read-write lock that excludes all others. While it is held, it can be downgraded to a read lock. */
export const write = {
  noun: 'write lock',
  alone: true,
  eachInLine: false,
  handedOver: true,
  shared: false,
  fenced: true,
  entersInto: ['write'],
  waitsForItselfIn: ['read', 'exclusive', 'fair'],
  becomes: 'read',
  owners: 'counted',
} as const satisfies Kind;
