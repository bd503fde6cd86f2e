import { StoreFailure } from '../../../core/seam/store-failure.js';
import type { LockKind } from '../../../core/kinds/kinds.js';

const foreign = (what: string): StoreFailure =>
  new StoreFailure(`the key is ${what}`, 'not-executed', { keyOnly: true });

/** The numbers of semaphores and latches in a memory space. */
export class Numbers {
  private readonly numbers = new Map<string, number>();

  /**  @param kindAt returns the kind of lock that has the key */
  constructor(
    private readonly notify: (finalKey: string) => void,
    private readonly kindAt: (finalKey: string) => LockKind | undefined,
  ) {}

  /** Returns the number; undefined when there is none. Throws when a lock has the key. */
  get(finalKey: string): number | undefined {
    const kind = this.kindAt(finalKey);
    if (kind) throw foreign(`held as a lock of the kind ${kind}, so there is no number`);
    return this.numbers.get(finalKey);
  }

  /** Sets the number, or removes it when it is undefined. */
  set(finalKey: string, number: number | undefined): void {
    if (number === undefined) this.numbers.delete(finalKey);
    else this.numbers.set(finalKey, number);
  }

  /** Wakes the waiters for the number. */
  announce(finalKey: string): void {
    this.notify(finalKey);
  }

  /** Throws when the key has a number, so that a lock cannot acquire it. */
  refuse(finalKey: string, kind: LockKind): void {
    if (!this.numbers.has(finalKey)) return;
    throw foreign(`a semaphore or a latch, so it cannot be a lock of the kind ${kind}`);
  }
}
