import type { Runtime } from '../../core/util/runtime.js';
import { remove } from './requests.js';
import { CODE, hasCode } from './zk-failure.js';
import type { ZkSession } from './zk-session.js';

/** Age in ms at which a container is removed, if it is empty. It doubles each time that it is not. */
const FIRST_MS = 10_000;
/** A container that is in use for longer is left to the server. */
const LONGEST_MS = 640_000;
/** How often ages are looked at, in ms: few removals at a time, beside the locks. */
const LOOK_MS = 200;

interface Due {
  readonly at: number;
  readonly ageMs: number;
}

/**
 * Removes the containers that this process has created, when they are empty. The server does so, too, but no more than 167 in
 * a second: keys that come once would fill it. It refuses to remove a container with a node of a holder or a waiter.
 */
export class EmptyContainers {
  private readonly due = new Map<string, Due>();
  private timer: unknown;

  constructor(
    private readonly runtime: Runtime,
    private readonly session: ZkSession,
  ) {}

  /** This process has created a container. */
  add(path: string, ageMs = FIRST_MS): void {
    if (this.session.isClosed) return;
    this.due.set(path, { at: this.runtime.now() + ageMs, ageMs });
    this.timer ??= this.runtime.setTimer(() => this.look(), LOOK_MS, true);
  }

  close(): void {
    this.runtime.clearTimer(this.timer);
    this.due.clear();
  }

  private look(): void {
    const { due, runtime } = this;
    this.timer = undefined;
    const now = runtime.now();
    // The innermost ones first: requests are executed in this order.
    const old = [...due].filter(([, { at }]) => at <= now).reverse();
    for (const [path, { ageMs }] of old) {
      due.delete(path);
      void this.remove(path, ageMs);
    }
    if (due.size > 0) this.timer = runtime.setTimer(() => this.look(), LOOK_MS, true);
  }

  private async remove(path: string, ageMs: number): Promise<void> {
    try {
      await this.session.request(remove(path), { mayWait: true });
    } catch (failure) {
      // It may have been created again meanwhile.
      const isOver = hasCode(failure, CODE.noNode) || this.due.has(path);
      if (!isOver && 2 * ageMs <= LONGEST_MS) this.add(path, 2 * ageMs);
    }
  }
}
