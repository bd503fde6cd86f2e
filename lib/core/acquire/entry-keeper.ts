import { CompactingMap } from '../util/compacting.js';
import { later } from '../util/later.js';
import { portionsOf } from '../util/portions.js';
import type { Runtime } from '../util/runtime.js';
import { livingFor, type QueueEntryTerms } from '../seam/claim.js';
import type { QueueEntryReply } from '../seam/reply.js';
import type { StoreRequests } from '../context/store-requests.js';
import type { StoreQueueEntry } from '../seam/store-queue-entry.js';

/** Shortest refresh period, in ms. */
const PERIOD_MS = 1_000;
/** Maximum load on the store, in entries for each ms of the period. */
const ENTRIES_PER_MS = 10;
/** Longest refresh period, in ms. After a crash, the entries of a process block others until they expire. */
const LONGEST_PERIOD_MS = 2_000;
/** Entry time to live: 3 refresh periods + 2 s, so that a single time-out does not expire it. */
const PERIODS_ALIVE = 3;
const ANSWER_MS = 2_000;
/** Maximum number of entries in one turn of the event loop: it takes some ms. */
const AT_ONCE = 500;

/** Reply for one queue entry. */
export type EntryState = Exclude<QueueEntryReply, { status: 'failed' }>;

/** A refresh of one entry. Its reply is undefined if the store's entries need no refresh. */
interface Refresh {
  readonly entry: StoreQueueEntry;
  readonly replied: (reply: QueueEntryReply | undefined, entry: StoreQueueEntry) => void;
}

/**
 * Refreshes the queue entries of a process, with one timer. Far behind in a queue, and with many entries, it does so
 * less often, and requests a longer time to live for them.
 */
export class EntryKeeper {
  private readonly entries = new CompactingMap<StoreQueueEntry, true>();
  /** Requests of callers that were woken together. */
  private readonly requested: Refresh[] = [];
  private timer: unknown;
  /** Position of the last of them at the last refresh. Each claim uses it. */
  private farthest = 0;

  constructor(
    private readonly requests: StoreRequests,
    private readonly runtime: Runtime,
    /** Called while a caller waits for long, so that others can see its process. */
    private readonly waits: () => void = () => undefined,
  ) {}

  /** Returns the terms of an entry. The watchdog renews every third of its lease: so long the first one lasts. */
  termsFor(watchdogMs: number, tokens: number): QueueEntryTerms {
    return { aliveMs: this.aliveMs, provisionalLeaseMs: Math.max(1, Math.floor(watchdogMs / 3)), tokens };
  }

  add(entry: StoreQueueEntry): void {
    this.entries.set(entry, true);
    this.farthest = Math.max(this.farthest, this.queuedBefore(entry));
    if (this.timer === undefined) this.arm();
  }

  remove(entry: StoreQueueEntry): void {
    this.entries.delete(entry);
    if (this.entries.size > 0) return;
    this.farthest = 0;
    this.stop();
  }

  stop(): void {
    this.runtime.clearTimer(this.timer);
    this.timer = undefined;
  }

  /** Refreshes one entry, and returns its state. In a store without refreshes the state stays, if the store replies. */
  request(entry: StoreQueueEntry): Promise<EntryState> {
    return new Promise((resolve, reject) => {
      const unchanged: EntryState = { status: 'queued', position: entry.position, retryInMs: Infinity };
      const replied: Refresh['replied'] = (reply) => {
        if (reply?.status === 'failed') reject(reply.cause);
        else if (reply) resolve(reply);
        else this.requests.inspect(entry.claim.finalKey).then(() => resolve(unchanged), reject);
      };
      if (this.requested.push({ entry, replied }) > 1) return;
      // No turn of the event loop: fake timers of a user's test would have to advance once more.
      later(() => void this.refreshAll(this.requested.splice(0)));
    });
  }

  private get periodMs(): number {
    const bearable = Math.max(this.entries.size / ENTRIES_PER_MS, this.farthest);
    return Math.min(Math.max(PERIOD_MS, bearable), LONGEST_PERIOD_MS);
  }

  private get aliveMs(): number {
    return Math.ceil(PERIODS_ALIVE * this.periodMs) + ANSWER_MS;
  }

  private arm(): void {
    this.timer = this.runtime.setTimer(() => this.keepAll(), this.periodMs);
  }

  private keepAll(): void {
    this.waits();
    const entries = [...this.entries.keys()];
    this.farthest = entries.reduce((farthest, entry) => Math.max(farthest, this.queuedBefore(entry)), 0);
    this.arm();
    const replied: Refresh['replied'] = (reply, entry) => {
      // A caller with an entry goes on from here: it looks for itself, or waits for the store.
      if (reply?.status === 'failed' && this.entries.has(entry)) entry.failed(reply.cause);
    };
    void this.refreshAll(entries.map((entry) => ({ entry, replied })));
  }

  /** Refreshes entries in portions: the event loop turns between two of them. */
  private async refreshAll(refreshes: readonly Refresh[]): Promise<void> {
    for (const [i, some] of portionsOf(refreshes, AT_ONCE, ({ entry }) => entry.claim.kind).entries()) {
      if (i > 0) await new Promise<void>((resolve) => void this.runtime.soon(resolve));
      void this.refresh(some);
    }
  }

  /** Refreshes entries of one kind. */
  private async refresh(refreshes: readonly Refresh[]): Promise<void> {
    const sentAt = this.runtime.now();
    let replies: readonly QueueEntryReply[] | undefined;
    try {
      replies = await this.requests.refreshEntries(
        refreshes.map(({ entry }) => livingFor(entry.claim, this.aliveMs)),
      );
    } catch (cause) {
      replies = refreshes.map(() => ({ status: 'failed', cause }));
    }
    for (const [i, { entry, replied }] of refreshes.entries()) {
      const reply = replies?.[i];
      if (reply && reply.status !== 'failed' && this.entries.has(entry)) entry.replied(reply, sentAt);
      replied(reply, entry);
    }
  }

  /** Number of processes before it. Entries of single callers are refreshed together by their process. */
  private queuedBefore({ claim, position }: StoreQueueEntry): number {
    return this.requests.traits(claim.kind).eachQueued ? 0 : position;
  }
}
