import { KeyOutage } from '../outage/key-outage.js';
import type { Outages } from '../outage/outages.js';
import type { StoreFailure } from '../seam/store-failure.js';
import type { Watch, WatchListener } from '../seam/watch.js';
import { CompactingMap } from '../util/compacting.js';
import type { Runtime } from '../util/runtime.js';
import { waitFor, type Waiting } from '../util/wait-for.js';

/** One caller, and how to reach it while it sleeps. */
export class Caller {
  /** Whether its request was rejected, or it came behind others that wait. */
  waits = false;
  sleep: Waiting<void> | undefined;

  /** @param arrival see {@link KeyOutage.arrive} */
  constructor(readonly arrival: number) {}
}

/** What the callers at one thing need of their service. */
export interface CallersHost {
  readonly runtime: Runtime;
  readonly outages: Outages;
  /** Whether only the first caller sends requests; otherwise each caller does. */
  readonly inOrder: boolean;
  watch(listener: WatchListener): Watch;
  /** Called when the last caller has left. */
  onIdle(): void;
}

/**
 * Callers of this process that want one thing, in order of their arrival, with one subscription for all of them. It
 * decides who is woken. It knows neither what they want nor how they ask for it; see {@link UntilWon}.
 */
export class Callers {
  /** How many times it may have become worth to ask again. Read before a request, compared after a refusal. */
  wakeUps = 0;
  /** How many wait, the first of them included. */
  waiting = 0;
  readonly outage: KeyOutage;
  private readonly callers = new CompactingMap<Caller, true>();
  private watching: Watch | undefined;
  private failure: StoreFailure | undefined;
  /** Request under way that callers may share, and the number of wake-ups when it was sent. */
  private shared: { readonly wakeUps: number; readonly reply: Promise<unknown> } | undefined;
  /** In an outage: the first caller is to look whether the store works again. */
  private isToLook = false;

  constructor(private readonly host: CallersHost) {
    this.outage = new KeyOutage(host.outages, this);
  }

  get inOrder(): boolean {
    return this.host.inOrder;
  }

  /** Whether wake-ups can arrive. */
  get isSubscribed(): boolean {
    return this.watching?.live ?? false;
  }

  /** Whether wake-ups are wanted, and cannot arrive. */
  get isNotSubscribed(): boolean {
    return this.watching?.live === false;
  }

  get first(): Caller | undefined {
    const [first] = this.callers.keys();
    return first;
  }

  /** Adds a caller, as the last one; it is to {@link leave}. */
  enter(): Caller {
    const caller = new Caller(this.outage.arrive());
    this.callers.set(caller, true);
    return caller;
  }

  leave(caller: Caller): void {
    const wasFirst = this.first === caller;
    if (caller.waits) this.waiting--;
    this.callers.delete(caller);
    if (this.callers.size === 0) {
      this.watching?.close();
      this.watching = undefined;
      this.outage.left();
      this.host.onIdle();
    } else if (wasFirst && this.inOrder) this.first?.sleep?.resolve();
    if (wasFirst && this.outage.isOn) this.lookAgain();
  }

  /** Whether a caller may send a request now. */
  mayAsk(caller: Caller): boolean {
    return !this.inOrder || this.waiting === 0 || this.first === caller;
  }

  /** Whether a caller goes on waiting while the store fails. */
  keepsWaiting({ arrival }: Caller): boolean {
    return this.outage.keepsWaiting(arrival);
  }

  /** Whether a caller is to look now whether the store works again. */
  isToLookNow(caller: Caller): boolean {
    return this.isToLook && this.first === caller;
  }

  /** The caller that is to look does so. */
  looks(): void {
    this.isToLook = false;
  }

  /** The store replied to one of them. After an outage they may have missed a message. */
  replied(): void {
    const { isOn } = this.outage;
    this.outage.replied();
    this.isToLook = false;
    if (isOn) this.woken();
  }

  /** The store may work again. */
  lookAgain(): void {
    this.isToLook = true;
    this.first?.sleep?.resolve();
  }

  /** Counts a caller among those that wait, from now on. */
  beginToWait(caller: Caller): void {
    if (!caller.waits) this.waiting++;
    caller.waits = true;
  }

  /** Sleeps until a wake-up, until it is the first, for `ms`, or until the signal. Throws when wake-ups can never come. */
  async sleep(caller: Caller, ms: number, signal: AbortSignal | undefined): Promise<void> {
    this.watching ??= this.host.watch({
      notified: () => this.woken(),
      failed: (failure) => {
        this.failure = failure;
        this.wakeAll();
      },
    });
    await waitFor<void>(this.host.runtime, {
      ms: this.failure ? 0 : ms,
      signal,
      listen: (sleep) => (caller.sleep = sleep),
      stop: () => (caller.sleep = undefined),
      onTime: (sleep) => sleep.resolve(),
      onAbort: (sleep) => sleep.resolve(),
    });
    if (this.failure) throw this.failure;
  }

  /** Sends one request for all callers that share it, once after each wake-up. */
  share<T>(send: () => Promise<T>): Promise<T> {
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
    for (const caller of [...this.callers.keys()]) caller.sleep?.resolve();
  }

  /** Rejects all callers that sleep with a failure, which each reports with its own wait. */
  failAll(failure: StoreFailure): void {
    for (const caller of [...this.callers.keys()]) caller.sleep?.reject(failure);
  }

  private woken(): void {
    this.wakeUps++;
    if (this.outage.isOn) return this.lookAgain();
    if (this.inOrder) this.first?.sleep?.resolve();
    else this.wakeAll();
  }
}
