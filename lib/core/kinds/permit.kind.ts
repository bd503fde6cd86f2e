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

/** The reason a store gives when it has no number of permits for a key and the claim brings none. */
export const NO_NUMBER_OF_PERMITS =
  'the store has no number of permits for this key: it was never given, it expired with the last lease, or the store has ' +
  'lost its data. Pass permits in each decorator or call';
