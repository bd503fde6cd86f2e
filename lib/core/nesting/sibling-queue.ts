import { abortedError, takenError } from '../errors/error-messages.js';
import type { Hold } from '../lease/hold.js';
import { deadlineOf, type Wait } from '../acquire/wait.js';
import type { Runtime } from '../runtime.js';
import { waitFor } from '../wait-for.js';

/** The nested call that is inside: it hears when the lease around it ends before it does. */
export interface Inside {
  endFromOutside(): void;
}

/**
 * Where nested calls for one key of a lease go in, one at a time. All sections that run in the lease share it.
 */
export class SiblingQueue {
  private occupied = false;
  private closed = false;
  private inside: Inside | undefined;
  /** Nested calls that wait, in order; told true when they may enter, false when the queue is closed. */
  private readonly waiting = new Set<(admitted: boolean) => void>();

  constructor(private readonly hold: Hold) {}

  /** Goes in, after the siblings that came before. False when the lock was lost or released meanwhile. */
  enter(wait: Wait, runtime: Runtime): Promise<boolean> {
    if (this.closed) return Promise.resolve(false);
    if (this.occupied) return this.admission(wait, runtime);
    this.occupied = true;
    return Promise.resolve(true);
  }

  /** Whether a nested call is in, or waits to go in. */
  get inUse(): boolean {
    return this.occupied;
  }

  /** Names what is in. */
  admitted(inside: Inside): void {
    this.inside = inside;
  }

  leave(): void {
    this.inside = undefined;
    const next = this.waiting.values().next();
    if (next.done) this.occupied = false;
    else next.value(true);
  }

  /** The lease has ended: waiting calls are turned away, and the one that is inside has lost its lock. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    for (const admit of [...this.waiting]) admit(false);
    this.inside?.endFromOutside();
  }

  private admission(wait: Wait, runtime: Runtime): Promise<boolean> {
    const { key, signal, startedAt, waitMs } = wait;
    return waitFor<boolean>(runtime, {
      ms: deadlineOf(wait) - runtime.now(),
      signal,
      listen: ({ resolve }) => {
        const stopListening = this.hold.onLoss(() => resolve(false));
        this.waiting.add(resolve);
        return () => {
          this.waiting.delete(resolve);
          stopListening();
        };
      },
      onTime: ({ reject }) => reject(takenError(key, runtime.now() - startedAt, waitMs)),
      onAbort: ({ reject }) => reject(abortedError(key, signal!, runtime.now() - startedAt)),
    });
  }
}
