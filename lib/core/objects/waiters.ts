import { CompactingMap } from '../util/compacting.js';
import type { Runtime } from '../util/runtime.js';
import type { Watch, WatchListener } from '../seam/lock-store.js';
import type { StoreFailure } from '../seam/store-failure.js';
import { KeyOutage } from '../outage/key-outage.js';
import type { Outages } from '../outage/outages.js';
import { waitFor } from '../util/wait-for.js';

/** One caller, and how to reach it while it sleeps. */
interface Sleeper {
  /** See {@link KeyOutage.arrive}. */
  readonly number: number;
  /** Whether its request was rejected, or that of a caller before it. */
  waits?: boolean;
  wake?: (() => void) | undefined;
  fail?: ((error: Error) => void) | undefined;
}

/** What the callers at one semaphore or latch need of their service. */
export interface WaitersHost {
  readonly runtime: Runtime;
  /** Whether only the first caller sends requests; otherwise each caller does. */
  readonly inOrder: boolean;
  watch(listener: WatchListener): Watch;
  /** See {@link KeyOutage}. */
  readonly outages: Outages;
  /** Called when the last caller has left. */
  onIdle(): void;
}

/** Callers of this process at one semaphore or latch, in order, with one subscription for all of them. */
export class Waiters {
  /** How many times it may have become worth to ask again. Read before asking, compared after a refusal. */
  wakeUps = 0;
  /** The question under way that callers may share, and the wake-ups there were when it was sent. */
  private shared: { readonly wakeUps: number; readonly reply: Promise<unknown> } | undefined;
  private readonly sleepers = new CompactingMap<object, Sleeper>();
  /** How many wait, the first of them included. */
  waiting = 0;
  private watching: Watch | undefined;
  private failure: StoreFailure | undefined;

  readonly outage: KeyOutage;
  /** While the store fails: the first of them is to look whether it works again. */
  private isToLook = false;

  constructor(private readonly host: WaitersHost) {
    this.outage = new KeyOutage(host.outages, this);
  }

  /** Whether wake-ups can arrive. */
  get isSubscribed(): boolean {
    return this.watching?.live ?? false;
  }

  /** Whether wake-ups are wanted, and cannot arrive. */
  get isNotSubscribed(): boolean {
    return this.watching?.live === false;
  }

  /** A caller comes, as the last one; it is to {@link leave}. */
  enter(): object {
    const caller = {};
    this.sleepers.set(caller, { number: this.outage.arrive() });
    return caller;
  }

  leave(caller: object): void {
    const wasFirst = this.isFirst(caller);
    if (this.sleepers.get(caller)?.waits) this.waiting--;
    this.sleepers.delete(caller);
    if (this.sleepers.size === 0) {
      this.watching?.close();
      this.watching = undefined;
      this.outage.left();
      this.host.onIdle();
    } else if (wasFirst && this.host.inOrder) this.first?.wake?.();
    if (wasFirst && this.outage.isOn) this.lookAgain();
  }

  /** Whether a caller goes on waiting while the store fails. */
  hasWaited(caller: object): boolean {
    return this.outage.hasWaited(this.sleepers.get(caller)!.number);
  }

  /** Whether a caller is the one that looks now whether the store works again. */
  looks(caller: object): boolean {
    if (!this.isToLook || !this.isFirst(caller)) return false;
    this.isToLook = false;
    return true;
  }

  /** The store replied to one of them. After an outage something may have been missed. */
  replied(): void {
    const { isOn } = this.outage;
    this.outage.replied();
    this.isToLook = false;
    if (isOn) this.wakeUp();
  }

  lookAgain(): void {
    this.isToLook = true;
    this.first?.wake?.();
  }

  isFirst(caller: object): boolean {
    const [first] = this.sleepers.keys();
    return first === caller;
  }

  /** From now on it counts as one that waits. */
  beginToWait(caller: object): void {
    this.sleepers.get(caller)!.waits = true;
    this.waiting++;
  }

  /** Sleeps until a wake-up, until it is the first, for `ms`, or until the signal. Throws when wake-ups can never come. */
  async sleep(caller: object, ms: number, signal: AbortSignal | undefined): Promise<void> {
    this.watching ??= this.host.watch({
      notified: () => this.wakeUp(),
      failed: (failure) => {
        this.failure = failure;
        this.wakeAll();
      },
    });
    const sleeper = this.sleepers.get(caller)!;
    await waitFor<void>(this.host.runtime, {
      ms: this.failure ? 0 : ms,
      signal,
      listen: ({ resolve, reject }) => {
        sleeper.wake = () => resolve();
        sleeper.fail = reject;
        return () => {
          sleeper.wake = undefined;
          sleeper.fail = undefined;
        };
      },
      onTime: ({ resolve }) => resolve(),
      onAbort: ({ resolve }) => resolve(),
    });
    if (this.failure) throw this.failure;
  }

  /** Asks for all who `share`, once after each wake-up; the others ask for themselves. */
  request<T>(shares: boolean, send: () => Promise<T>): Promise<T> {
    if (!shares) return send();
    if (this.shared?.wakeUps === this.wakeUps) return this.shared.reply as Promise<T>;
    const reply = send();
    const shared = { wakeUps: this.wakeUps, reply };
    this.shared = shared;
    const over = (): void => {
      if (this.shared === shared) this.shared = undefined;
    };
    reply.then(over, over);
    return reply;
  }

  /** Each of them has to look for itself. */
  wakeAll(): void {
    for (const sleeper of [...this.sleepers.values()]) sleeper.wake?.();
  }

  /** Rejects all sleeping callers with this error. */
  failAll(error: () => Error): void {
    for (const sleeper of [...this.sleepers.values()]) sleeper.fail?.(error());
  }

  private wakeUp(): void {
    this.wakeUps++;
    if (this.outage.isOn) return this.lookAgain();
    if (this.host.inOrder) this.first?.wake?.();
    else this.wakeAll();
  }

  private get first(): Sleeper | undefined {
    const [first] = this.sleepers.values();
    return first;
  }
}
