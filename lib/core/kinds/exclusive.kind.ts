import type { Kind } from './kind.js';

/** Lock with one owner: Redisson's RLock. */
export const exclusive = {
  noun: 'lock',
  alone: true,
  eachInLine: false,
  handedOver: true,
  shared: false,
  fenced: true,
  entersInto: ['exclusive', 'fair'],
  waitsForItselfIn: ['read', 'write'],
  becomes: undefined,
  owners: 'counted',
} as const satisfies Kind;
