import type { Runtime } from './runtime.js';

/** So much is done in one turn of the event loop: a few ms, where callers get errors with their stacks. */
const AT_ONCE = 250;

/** Does what a crowd asks for in one moment in portions: the event loop goes round between two of them. */
export class Portions {
  private done = 0;
  private readonly rest: (() => void)[] = [];

  constructor(private readonly runtime: Runtime) {}

  /** Does it at once, or when those before it are done. */
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
