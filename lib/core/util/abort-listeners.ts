/** Listeners of one signal of a caller, behind the one listener that the library adds to it. */
class AbortListeners {
  private readonly entries = new Set<() => void>();
  private readonly notifyAll = (): void => {
    for (const entry of [...this.entries]) if (this.entries.has(entry)) entry();
  };

  constructor(private readonly signal: AbortSignal) {
    signal.addEventListener('abort', this.notifyAll, { once: true });
  }

  add(listener: () => void): () => void {
    // A wrapper for each registration: if a function listens twice, each returned function removes one of the two.
    const entry = (): void => listener();
    this.entries.add(entry);
    return () => {
      if (!this.entries.delete(entry) || this.entries.size > 0) return;
      this.signal.removeEventListener('abort', this.notifyAll);
      if (bySignal.get(this.signal) === this) bySignal.delete(this.signal);
    };
  }
}

const bySignal = new WeakMap<AbortSignal, AbortListeners>();

/**
 * Registers a listener for the abort of a caller's signal; returns a function that removes it. The signal gets one
 * listener of the library, however many callers wait with it: Node warns of a leak at more than ten.
 */
export const onAbort = (signal: AbortSignal, listener: () => void): (() => void) => {
  const existing = bySignal.get(signal);
  if (existing) return existing.add(listener);
  const listeners = new AbortListeners(signal);
  bySignal.set(signal, listeners);
  return listeners.add(listener);
};
