import type { Runtime } from '../runtime.js';
import type { Claim } from '../seam/claim.js';
import type { PollTraits } from '../seam/kind-traits.js';
import type { KindStore } from '../seam/lock-store.js';
import type { Watch, WatchListener } from '../seam/watch.js';
import { NOT_SUBSCRIBED_RETRY_MS } from './wake-up.js';

/** Factor between two pauses without a change. */
const LONGER = 4 / 3;
/** Part of a pause by which it varies, in both directions: processes must not ask in step. */
const JITTER = 0.25;

/** One key that a caller waits for. */
interface Polled {
  readonly claim: Claim;
  readonly listener: WatchListener;
  /** Subscription of the store, where it has one. */
  own: Watch | undefined;
  pauseMs: number;
  dueAt: number;
}

/**
 * Asks a store at intervals about all keys of one kind that callers of this process wait for, in one request. A store's
 * own subscription, where it has one, is listened to as well, and makes the pauses longer while it is live.
 */
export class Poller {
  private readonly polled = new Set<Polled>();
  private timer: unknown;
  private timerDueAt = Infinity;
  private isAsking = false;
  /** Whether the store answered the last request. */
  private answers = true;

  constructor(
    private readonly kind: KindStore,
    private readonly poll: PollTraits,
    private readonly runtime: Runtime,
  ) {}

  watch(claim: Claim, listener: WatchListener): Watch {
    const { kind, polled } = this;
    const one: Polled = { claim, listener, own: undefined, pauseMs: this.poll.minMs, dueAt: Infinity };
    polled.add(one);
    one.own = kind.watch?.(claim, {
      notified: () => this.wake(one),
      // It can never become live: what is left is to ask.
      failed: () => (one.own = undefined),
    });
    this.postpone(one, Infinity);
    const answers = (): boolean => this.answers;
    return {
      get live() {
        return polled.has(one) && answers();
      },
      close: () => {
        polled.delete(one);
        one.own?.close();
        if (polled.size === 0 && !this.isAsking) this.arm(Infinity);
      },
    };
  }

  /** The key may be free. */
  private wake(one: Polled, pauseMs = this.poll.minMs): void {
    one.pauseMs = pauseMs;
    this.postpone(one, Infinity);
    one.listener.notified();
  }

  /** Sets when the key is asked about next: after its pause, and at the end of the blocking hold at the latest. */
  private postpone(one: Polled, freeInMs: number): void {
    const varied = one.pauseMs * (1 - JITTER + 2 * JITTER * this.runtime.random());
    one.dueAt = this.runtime.now() + Math.min(varied, freeInMs);
    if (one.dueAt < this.timerDueAt && !this.isAsking) this.arm(one.dueAt);
  }

  /** Sets when the store is asked next; `Infinity` for not at all. */
  private arm(dueAt: number): void {
    const { runtime } = this;
    runtime.clearTimer(this.timer);
    this.timerDueAt = dueAt;
    if (dueAt === Infinity) return;
    this.timer = runtime.setTimer(() => void this.ask(), Math.max(0, dueAt - runtime.now()), true);
  }

  private async ask(): Promise<void> {
    const { runtime, polled } = this;
    const now = runtime.now();
    // Also about each key that is in the second half of its pause: one request costs little more for many keys.
    const due = [...polled].filter(({ dueAt, pauseMs }) => dueAt <= now + pauseMs / 2);
    this.isAsking = true;
    const freeInMs = await this.peek(due.map(({ claim }) => claim));
    this.isAsking = false;
    this.answers = freeInMs !== undefined;
    due.forEach((one, i) => this.answered(one, freeInMs?.[i]));
    this.timerDueAt = Infinity;
    if (polled.size > 0) this.arm(Math.min(...[...polled].map(({ dueAt }) => dueAt)));
  }

  /** Undefined when the store fails. Callers then request their keys, which finds out what is wrong. */
  private async peek(claims: readonly Claim[]): Promise<readonly number[] | undefined> {
    try {
      const freeInMs = await this.kind.peekMany!(claims);
      return claims.every((_claim, i) => freeInMs[i]! >= 0) ? freeInMs : undefined;
    } catch {
      return undefined;
    }
  }

  private answered(one: Polled, freeInMs: number | undefined): void {
    if (!this.polled.has(one)) return;
    if (freeInMs === undefined) return this.wake(one, NOT_SUBSCRIBED_RETRY_MS);
    if (freeInMs === 0) return this.wake(one);
    const { maxMs, liveMaxMs } = this.poll;
    one.pauseMs = Math.min(one.pauseMs * LONGER, one.own?.live ? liveMaxMs : maxMs);
    this.postpone(one, freeInMs);
  }
}
