import { StoreFailure } from '../../../core/seam/store-failure.js';
import type { LockKind } from '../../../core/kinds/kinds.js';

const foreign = (finalKey: string, what: string): StoreFailure =>
  new StoreFailure(`"${finalKey}" is ${what}`, 'not-executed', { keyOnly: true });

/** The numbers of a space of memory: what semaphores and latches keep. */
export class Numbers {
  private readonly numbers = new Map<string, number>();

  /** @param kindAt the kind of lock that has the key. */
  constructor(
    private readonly notify: (finalKey: string) => void,
    private readonly kindAt: (finalKey: string) => LockKind | undefined,
  ) {}

  /** The number there; undefined where there is none. Throws where a lock has the key. */
  get(finalKey: string): number | undefined {
    const kind = this.kindAt(finalKey);
    if (kind) throw foreign(finalKey, `held as a lock of the kind ${kind}, so there is no number`);
    return this.numbers.get(finalKey);
  }

  /** Without a number there is none any more. */
  set(finalKey: string, number: number | undefined): void {
    if (number === undefined) this.numbers.delete(finalKey);
    else this.numbers.set(finalKey, number);
  }

  /** Wakes who waits for the number. */
  announce(finalKey: string): void {
    this.notify(finalKey);
  }

  /** Throws when there is one, since a lock is to have the key. */
  refuse(finalKey: string, kind: LockKind): void {
    if (!this.numbers.has(finalKey)) return;
    throw foreign(finalKey, `a semaphore or a latch, so it cannot be a lock of the kind ${kind}`);
  }
}
