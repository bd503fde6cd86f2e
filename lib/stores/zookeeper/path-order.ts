/**
 * Executes operations on a path in the order of the calls. The next one begins as soon as all requests of the one before
 * have been sent: a session has them executed in that order.
 */
export class PathOrder {
  private readonly last = new Map<string, Promise<void>>();

  /** Calls `operation` in its turn. It calls `sent` when the next one may begin; its end does so, too. */
  run<T>(path: string, operation: (sent: () => void) => Promise<T>): Promise<T> {
    const { last } = this;
    let sent!: () => void;
    const over = new Promise<void>((resolve) => (sent = resolve));
    const before = last.get(path);
    last.set(path, over);
    const result = before ? before.then(() => operation(sent)) : operation(sent);
    result.then(sent, sent);
    void over.then(() => {
      if (last.get(path) === over) last.delete(path);
    });
    return result;
  }
}
