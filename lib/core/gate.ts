import { abortedError, takenError } from './failures.js';
import type { Hold } from './hold.js';
import { deadlineOf, type Wait } from './key-queue.js';
import type { Runtime } from './runtime.js';

/**
 * Where nested calls for one key of a lease go in, one at a time. All sections that run in the lease share it.
 */
export class Gate {
  private occupied = false;
  /** Who wants to go in, in order; told true when it is their turn, false when the lock is lost. */
  private readonly waiting = new Set<(admitted: boolean) => void>();

  constructor(private readonly hold: Hold) {}

  /** Goes in, after the siblings that came before. False when the lock was lost meanwhile. */
  enter(wait: Wait, runtime: Runtime): Promise<boolean> {
    if (this.occupied) return this.admission(wait, runtime);
    this.occupied = true;
    return Promise.resolve(true);
  }

  leave(): void {
    const next = this.waiting.values().next();
    if (next.done) this.occupied = false;
    else next.value(true);
  }

  private admission(wait: Wait, runtime: Runtime): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const { key, signal, startedAt, waitMs } = wait;
      const settle = (): void => {
        this.waiting.delete(admit);
        stopListening();
        runtime.clearTimer(timer);
        signal?.removeEventListener('abort', onAbort);
      };
      const admit = (admitted: boolean): void => {
        settle();
        resolve(admitted);
      };
      const refuse = (error: Error): void => {
        settle();
        reject(error);
      };
      const onAbort = (): void => refuse(abortedError(key, signal!, runtime.now() - startedAt));
      const leftMs = deadlineOf(wait) - runtime.now();
      const onDeadline = (): void => refuse(takenError(key, runtime.now() - startedAt, waitMs));
      const timer = leftMs < Infinity ? runtime.setTimer(onDeadline, leftMs) : undefined;
      const stopListening = this.hold.onLoss(() => admit(false));
      this.waiting.add(admit);
      signal?.addEventListener('abort', onAbort, { once: true });
      if (signal?.aborted) onAbort();
    });
  }
}
