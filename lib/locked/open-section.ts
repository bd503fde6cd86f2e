import { AsyncLocalStorage } from 'node:async_hooks';
import type { LockSection } from '../core/lock-manager.js';

/** A section that is held open for something that goes on after a call has returned. */
export interface OpenSection {
  /** Runs something as a part of the section. */
  inSection<R>(fn: () => R): R;
  /** Ends it, and rejects where `run` does after the section (`onLost: 'throw'`). Idempotent. */
  end(): Promise<void>;
}

/**
 * Opens a section, and keeps it open until `end()`.
 *
 * @param run runs a section under a lease, such as `withLock`; what it rejects with before the section is rejected here
 * @param notRun the error when it ran nothing
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
    // Before the section opened this is the caller's error; afterwards `end` delivers it. A mocked service may give no
    // promise. V8 follows the stack to the caller through `resolve` itself, and through no function around it.
    Promise.resolve(section)
      .then(() => {
        if (!opened) throw notRun();
        return opened;
      })
      .then(resolve, reject);
  });
};
