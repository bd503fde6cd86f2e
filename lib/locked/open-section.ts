import { AsyncLocalStorage } from 'node:async_hooks';
import type { SectionOptions } from '../core/settings/acquire-options.js';
import type { LockService } from '../lock.service.js';

/** A section that is held open for something that goes on after a call has returned. */
export interface OpenSection {
  /** Runs something as a part of the section. */
  inSection<R>(fn: () => R): R;
  /** Ends it, and rejects where `withLock` would (`onLost: 'throw'`). Idempotent. */
  end(): Promise<void>;
}

/** Takes the lock, and keeps it until `end()`. Rejects as `withLock` does; with `notRun()` if nothing was run. */
export const openSection = async (
  locks: LockService,
  keys: readonly string[],
  options: SectionOptions,
  notRun: () => Error,
): Promise<OpenSection> => {
  let finish!: () => void;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  return new Promise<OpenSection>((resolve, reject) => {
    const section: Promise<void> = locks.withLock(keys, options, () => {
      const end = (): Promise<void> => {
        finish();
        return section;
      };
      resolve({ inSection: AsyncLocalStorage.snapshot(), end });
      return finished;
    });
    // Before the section opened this is the caller's error; afterwards `end` delivers it.
    // A mocked service may give no promise.
    Promise.resolve(section).then(() => reject(notRun()), reject);
  });
};
