import type { Runtime } from './runtime.js';

/** Number of actions in one turn of the event loop. That takes a few ms if callers get errors with stacks. */
export const AT_ONCE = 250;

/** Runs the actions of a crowd in portions: the event loop turns between two of them. */
export class Portions {
  /** Number of actions that have run since the portion began. Few of them are of the same turn, unless there is a crowd. */
  private done = 0;
  private readonly rest: { readonly action: () => void; readonly count: number }[] = [];

  constructor(private readonly runtime: Runtime) {}

  /** Runs an action at once, or after the earlier actions. It counts as a number of them. */
  add(action: () => void, count = 1): void {
    if (this.done < AT_ONCE) {
      this.done += count;
      action();
    } else if (this.rest.push({ action, count }) === 1) this.runtime.soon(() => this.goOn());
  }

  private goOn(): void {
    this.done = 0;
    let length = 0;
    for (; length < this.rest.length && this.done < AT_ONCE; length++) this.done += this.rest[length]!.count;
    const portion = this.rest.splice(0, length);
    if (this.rest.length > 0) this.runtime.soon(() => this.goOn());
    for (const { action } of portion) action();
  }
}

/** Returns items in portions of at most `max`, each of one group. */
export const portionsOf = <T>(items: Iterable<T>, max: number, groupOf?: (item: T) => unknown): T[][] => {
  const portions: T[][] = [];
  const open = new Map<unknown, T[]>();
  for (const item of items) {
    const group = groupOf?.(item);
    let portion = open.get(group);
    if (!portion || portion.length === max) {
      open.set(group, (portion = []));
      portions.push(portion);
    }
    portion.push(item);
  }
  return portions;
};
