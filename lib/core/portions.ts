import type { Runtime } from './runtime.js';

/** Number of actions in one turn of the event loop. That takes a few ms if callers get errors with stacks. */
const AT_ONCE = 250;

/** Runs the actions of a crowd in portions: the event loop turns between two of them. */
export class Portions {
  private done = 0;
  private readonly rest: (() => void)[] = [];

  constructor(private readonly runtime: Runtime) {}

  /** Runs an action at once, or after the earlier actions. */
  add(action: () => void): void {
    if (this.done === AT_ONCE) return void this.rest.push(action);
    if (this.done === 0) this.runtime.soon(() => this.goOn());
    this.done += 1;
    action();
  }

  private goOn(): void {
    this.done = 0;
    for (const action of this.rest.splice(0, AT_ONCE)) this.add(action);
  }
}
