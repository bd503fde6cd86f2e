import { AsyncLocalStorage } from 'node:async_hooks';
import type { LockSection } from '../../core/service/lock-manager.js';

/** A section that stays open after the call has returned. */
export interface OpenSection {
  /** Runs `fn` as a part of the section. */
  inSection<R>(fn: () => R): R;
  /** Ends the section. Rejects when `run` rejects after the section (`onLost: 'throw'`). Idempotent. */
  end(): Promise<void>;
}

/**
 * Opens a section, and keeps it open until `end()`. Rejects with the error of `run` if the section was not opened.
 *
 * @param run runs a section under a lease, such as `withLock`
 * @param notRun returns the error for a `run` that did not run its section
 */
export const openSection = async (
  run: (section: LockSection<void>) => Promise<void>,
  notRun: () => Error,
): Promise<OpenSection> => {
  let finish!: () => void;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  return new Promise<OpenSection>((resolve, reject) => {
    let opened: OpenSection | undefined;
    const section: Promise<void> = run(() => {
      const end = (): Promise<void> => {
        finish();
        return section;
      };
      opened = { inSection: AsyncLocalStorage.snapshot(), end };
      resolve(opened);
      return finished;
    });
    // Before the section is open, an error is the caller's; afterwards `end` delivers it. A mocked service may return
    // no promise. V8 follows the stack to the caller only if `resolve` is passed itself, without a function around it.
    Promise.resolve(section)
      .then(() => {
        if (!opened) throw notRun();
        return opened;
      })
      .then(resolve, reject);
  });
};
