/** All who listen to one signal of a caller, behind the one listener that it has of ours. */
class AbortListeners {
  private readonly entries = new Set<() => void>();
  private readonly tellAll = (): void => {
    for (const entry of [...this.entries]) if (this.entries.has(entry)) entry();
  };

  constructor(private readonly signal: AbortSignal) {
    signal.addEventListener('abort', this.tellAll, { once: true });
  }

  add(listener: () => void): () => void {
    // An entry of its own: a function that listens twice is taken off once.
    const entry = (): void => listener();
    this.entries.add(entry);
    return () => {
      if (!this.entries.delete(entry) || this.entries.size > 0) return;
      this.signal.removeEventListener('abort', this.tellAll);
      if (bySignal.get(this.signal) === this) bySignal.delete(this.signal);
    };
  }
}

const bySignal = new WeakMap<AbortSignal, AbortListeners>();

/**
 * Listens for the abort of a caller's signal; the returned function stops that. However many callers wait with one
 * signal, it has one listener of ours: Node warns of a leak when there are more than ten.
 */
export const onAbort = (signal: AbortSignal, listener: () => void): (() => void) => {
  const existing = bySignal.get(signal);
  if (existing) return existing.add(listener);
  const listeners = new AbortListeners(signal);
  bySignal.set(signal, listeners);
  return listeners.add(listener);
};
