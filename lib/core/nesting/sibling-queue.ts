import { abortedError, takenError } from '../errors/error-messages.js';
import type { Hold } from '../lease/hold.js';
import { deadlineOf, type Wait } from '../wait/wait.js';
import type { Runtime } from '../util/runtime.js';
import type { ShowKey } from '../util/shown-key.js';
import { waitFor, type Waiting } from '../util/wait-for.js';

/** The nested call that is inside. It is notified when the lease around it ends first. */
export interface Inside {
  readonly siblings: SiblingQueue | undefined;
  endFromOutside(): boolean;
}

/** What the queue needs of its service. */
export interface SiblingsHost {
  readonly runtime: Runtime;
  readonly shown: ShowKey;
}

/** Queue of the nested calls for one key of a lease, which enter one at a time. All sections of the lease share it. */
export class SiblingQueue {
  private occupied = false;
  private closed = false;
  private inside: Inside | undefined;
  private onEmpty: (() => void) | undefined;
  /** Nested calls that wait, in order. Resolved with true when a call may enter, with false when the queue is closed. */
  private readonly waiting = new Set<Waiting<boolean>>();

  constructor(private readonly hold: Hold) {}

  /** Enters after the earlier siblings. Resolves with false when the lock was lost or released meanwhile. */
  enter(wait: Wait, host: SiblingsHost): Promise<boolean> {
    if (this.closed) return Promise.resolve(false);
    if (this.occupied) return this.admission(wait, host);
    this.occupied = true;
    return Promise.resolve(true);
  }

  /** Whether a nested call is inside, or waits to enter. */
  get inUse(): boolean {
    return this.occupied;
  }

  admitted(inside: Inside): void {
    this.inside = inside;
  }

  leave(): void {
    this.inside = undefined;
    const next = this.waiting.values().next();
    if (!next.done) return next.value.resolve(true);
    this.occupied = false;
    this.onEmpty?.();
  }

  /** Resolves when no nested call is inside or waits. */
  async emptied(): Promise<void> {
    if (this.occupied) await new Promise<void>((resolve) => (this.onEmpty = resolve));
  }

  /** Rejects waiting calls, because the lease has ended. Returns the one that is inside: it has lost the lock. */
  close(): Inside | undefined {
    if (this.closed) return undefined;
    this.closed = true;
    for (const one of [...this.waiting]) one.resolve(false);
    return this.inside;
  }

  private admission(wait: Wait, { runtime, shown }: SiblingsHost): Promise<boolean> {
    const { key, signal, startedAt, waitMs } = wait;
    let stop: (() => void) | undefined;
    return waitFor<boolean>(runtime, {
      ms: deadlineOf(wait) - runtime.now(),
      signal,
      listen: (waiting) => {
        const stopListening = this.hold.onLoss(() => waiting.resolve(false));
        this.waiting.add(waiting);
        stop = () => {
          this.waiting.delete(waiting);
          stopListening();
        };
      },
      stop: () => stop?.(),
      onTime: (waiting) => waiting.reject(takenError(shown(key), runtime.now() - startedAt, waitMs)),
      onAbort: (waiting) => waiting.reject(abortedError(shown(key), signal!, runtime.now() - startedAt)),
    });
  }
}
