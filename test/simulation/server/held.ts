import type { HistoryEvent } from '../../checker/history.js';

/** The holds of a server, by the events about them: for each key the owners, each with the end of its lease. */
export class Held {
  private readonly keys = new Map<string, Map<string, number>>();

  /** Each hold, in the order in which they were granted. */
  get all(): readonly { readonly key: string; readonly owner: string; readonly until: number }[] {
    return [...this.keys].flatMap(([key, owners]) =>
      [...owners].map(([owner, until]) => ({ key, owner, until })),
    );
  }

  take(event: HistoryEvent): void {
    if (event.type === 'hold' || event.type === 'armed') {
      const owners = this.keys.get(event.key) ?? new Map<string, number>();
      this.keys.set(event.key, owners.set(event.owner, event.until ?? Infinity));
    } else if (event.type === 'free') {
      this.keys.get(event.key)?.delete(event.owner);
    }
  }

  /** The end of the longest lease, of one key or of all; `at` when nothing is held. */
  latestEnd(at: number, key?: string): number {
    const ends = this.all.filter((one) => key === undefined || one.key === key).map(({ until }) => until);
    return Math.max(at, ...ends);
  }
}
