/**
 * Executes operations on a path in the order of the calls. The next one begins as soon as all requests of the one before
 * have been sent: a session has them executed in that order.
 */
export class PathOrder {
  /** The last operation of each path whose requests are not all sent, with the one behind it. */
  private readonly last = new Map<string, { next?: () => void }>();

  /** Calls `operation` in its turn. It calls `sent` when the next one may begin; its end does so, too. */
  run<T>(path: string, operation: (sent: () => void) => Promise<T>): Promise<T> {
    const { last } = this;
    const turn: { next?: () => void } = {};
    const sent = (): void => {
      if (last.get(path) === turn) last.delete(path);
      turn.next?.();
    };
    const before = last.get(path);
    last.set(path, turn);
    const result = before
      ? new Promise<void>((resolve) => (before.next = resolve)).then(() => operation(sent))
      : operation(sent);
    result.then(sent, sent);
    return result;
  }
}
