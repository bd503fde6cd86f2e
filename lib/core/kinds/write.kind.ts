import type { Kind } from './kind.js';

/** The half of a read-write lock that lets nobody else in, and that can become a read lock while it is held. */
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
