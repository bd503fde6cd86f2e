import type { Claim } from '../../../core/seam/claim.js';
import { StoreFailure } from '../../../core/seam/store-failure.js';
import type { SpaceClock } from './space-clock.js';

/** The fencing tokens of a memory space. */
export class Tokens {
  // One series for all keys: it grows for each of them, and needs no memory per key.
  private last = 0;
  /** Last tokens of keys with a per-key counter. A counter never ends, whatever becomes of the holds. */
  private readonly counters = new Map<string, number>();

  constructor(private readonly clock: SpaceClock) {}

  /** Makes all later tokens larger than this one. */
  raise({ finalKey, perKeyCounter }: Claim, token: number): void {
    if (perKeyCounter) this.counters.set(finalKey, Math.max(this.counters.get(finalKey) ?? 0, token));
    else this.last = Math.max(this.last, token);
  }

  /** Reserves the tokens that the claim asks for, which are consecutive, and returns the first. */
  reserve({ finalKey, tokens, perKeyCounter }: Claim): number {
    const first = perKeyCounter
      ? (this.counters.get(finalKey) ?? 0) + 1
      : Math.max(this.last + 1, Math.floor(this.clock.wallClockMicros()));
    // Without the brackets the sum could exceed the exact integers and come back rounded.
    const last = first + (tokens - 1);
    if (!Number.isSafeInteger(last)) {
      throw new StoreFailure(
        `No fencing token can be given: ${String(last)} is not an exact integer. ` +
          'The wall clock of the memory store is far in the future, or does not answer a number.',
        'not-executed',
      );
    }
    if (perKeyCounter) this.counters.set(finalKey, last);
    else this.last = last;
    return first;
  }
}
