import type { Runtime } from '../util/runtime.js';
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
class PolledKey implements Watch {
  /** Subscription of the store, where it has one. */
  subscription: Watch | undefined;
  dueAt = Infinity;

  constructor(
    readonly claim: Claim,
    readonly listener: WatchListener,
    private readonly poller: Poller,
    public pauseMs: number,
  ) {}

  get live(): boolean {
    return this.poller.isLive(this);
  }

  close(): void {
    this.poller.remove(this);
    this.subscription?.close();
  }
}

/**
 * Asks a store at intervals about all keys of one kind that callers of this process wait for, in few requests. A store's
 * own subscription, where it has one, is listened to as well, and makes the pauses longer while it is live.
 */
export class Poller {
  private readonly keys = new Set<PolledKey>();
  private timer: unknown;
  private timerDueAt = Infinity;
  private isAsking = false;
  private storeReplies = true;

  constructor(
    private readonly kind: KindStore,
    private readonly poll: PollTraits,
    private readonly runtime: Runtime,
  ) {}

  watch(claim: Claim, listener: WatchListener): Watch {
    const key = new PolledKey(claim, listener, this, this.poll.minMs);
    this.keys.add(key);
    key.subscription = this.kind.watch?.(claim, {
      notified: () => this.wake(key),
      freeIn: (ms) => this.postpone(key, ms),
      // It can never become live: polling is left.
      failed: () => (key.subscription = undefined),
    });
    this.postpone(key);
    return key;
  }

  /** Whether the key is asked about, with success. */
  isLive(key: PolledKey): boolean {
    return this.keys.has(key) && this.storeReplies;
  }

  remove(key: PolledKey): void {
    this.keys.delete(key);
    if (this.keys.size === 0 && !this.isAsking) this.arm(Infinity);
  }

  /** Wakes the caller: the key may be free. */
  private wake(key: PolledKey, pauseMs = this.poll.minMs): void {
    if (!this.keys.has(key)) return;
    key.pauseMs = pauseMs;
    this.postpone(key);
    key.listener.notified();
  }

  /** Sets when the key is asked about next: after its pause, and at the end of the blocking hold at the latest. */
  private postpone(key: PolledKey, freeInMs = Infinity): void {
    const ownPauseMs = this.storeReplies ? key.subscription?.pauseMs : undefined;
    const variedMs = (ownPauseMs ?? key.pauseMs) * (1 - JITTER + 2 * JITTER * this.runtime.random());
    key.dueAt = this.runtime.now() + Math.min(variedMs, freeInMs);
    // A request under way sets the timer when it ends.
    if (key.dueAt < this.timerDueAt && !this.isAsking) this.arm(key.dueAt);
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
    const { runtime, keys } = this;
    const now = runtime.now();
    // Also about each key that is in the second half of its pause: one request costs little more for many keys.
    const due = [...keys].filter(({ dueAt, pauseMs }) => dueAt <= now + pauseMs / 2);
    // The key that the timer was set for may have gone.
    if (due.length > 0) await this.askAbout(due);
    this.arm(Math.min(...[...keys].map(({ dueAt }) => dueAt)));
  }

  private async askAbout(due: readonly PolledKey[]): Promise<void> {
    this.isAsking = true;
    const freeInMs = await this.peek(due.map(({ claim }) => claim));
    this.isAsking = false;
    this.storeReplies = freeInMs !== undefined;
    due.forEach((key, i) => this.replied(key, freeInMs?.[i]));
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

  private replied(key: PolledKey, freeInMs: number | undefined): void {
    if (freeInMs === undefined) return this.wake(key, NOT_SUBSCRIBED_RETRY_MS);
    if (freeInMs === 0) return this.wake(key);
    const { maxMs, liveMaxMs } = this.poll;
    key.pauseMs = Math.min(key.pauseMs * LONGER, key.subscription?.live ? liveMaxMs : maxMs);
    this.postpone(key, freeInMs);
  }
}
