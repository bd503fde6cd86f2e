import type { Kind } from './kind.js';

/**
 * One of a limited number of permits: Redisson's RPermitExpirableSemaphore, whose permits are named by 16 bytes. Each
 * call takes one, also inside another: what is counted is work that goes on, not who does it.
 */
export const permit = {
  noun: 'permit',
  alone: false,
  eachInLine: false,
  handedOver: false,
  shared: false,
  fenced: false,
  entersInto: [],
  waitsForItselfIn: [],
  becomes: undefined,
  owners: 'random',
} as const satisfies Kind;
