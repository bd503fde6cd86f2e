import { CompactingMap } from '../compacting.js';
import type { Runtime } from '../runtime.js';
import { livingFor, type QueueEntryTerms } from '../seam/claim.js';
import type { QueueEntryReply } from '../seam/reply.js';
import type { StoreRequests } from '../store-requests.js';
import type { OwnEntry } from './own-entry.js';

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
const AT_ONCE = 1_000;

/** Reply for one queue entry. */
export type EntryState = Exclude<QueueEntryReply, { status: 'failed' }>;

/**
 * Refreshes the queue entries of a process, with one timer. Far behind in a queue, and with many entries, it does so
 * less often, and requests a longer time to live for them.
 */
export class EntryKeeper {
  /** Entries, with the callback for a failed refresh. */
  private readonly entries = new CompactingMap<OwnEntry, (cause: unknown) => void>();
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

  add(entry: OwnEntry, onFailure: (cause: unknown) => void): void {
    this.entries.set(entry, onFailure);
    this.farthest = Math.max(this.farthest, this.queuedBefore(entry));
    if (this.timer === undefined) this.arm();
  }

  remove(entry: OwnEntry): void {
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
  async request(entry: OwnEntry): Promise<EntryState> {
    const sentAt = this.runtime.now();
    const replies = await this.requests.refreshEntries([livingFor(entry.claim, this.aliveMs)]);
    const reply = replies?.[0];
    if (reply?.status === 'failed') throw reply.cause;
    if (reply) entry.replied(reply, sentAt);
    else await this.requests.inspect(entry.claim.finalKey);
    return reply ?? { status: 'queued', position: entry.position, retryInMs: Infinity };
  }

  private get periodMs(): number {
    const bearable = Math.max(this.entries.size / ENTRIES_PER_MS, this.farthest);
    return Math.min(Math.max(PERIOD_MS, bearable), LONGEST_PERIOD_MS);
  }

  private get aliveMs(): number {
    return Math.ceil(PERIODS_ALIVE * this.periodMs) + ANSWER_MS;
  }

  private arm(): void {
    this.timer = this.runtime.setTimer(() => void this.keepAll(), this.periodMs);
  }

  private async keepAll(): Promise<void> {
    this.waits();
    const entries = [...this.entries.keys()];
    this.farthest = entries.reduce((farthest, entry) => Math.max(farthest, this.queuedBefore(entry)), 0);
    this.arm();
    const kinds = new Set(entries.map(({ claim }) => claim.kind));
    for (const kind of kinds) {
      const ofKind = entries.filter(({ claim }) => claim.kind === kind);
      for (let at = 0; at < ofKind.length; at += AT_ONCE) {
        if (at > 0) await new Promise<void>((resolve) => void this.runtime.soon(resolve));
        const some = ofKind.slice(at, at + AT_ONCE).filter((entry) => this.entries.has(entry));
        if (some.length > 0) void this.keepSome(some);
      }
    }
  }

  /** Refreshes the entries of one kind. */
  private async keepSome(entries: readonly OwnEntry[]): Promise<void> {
    const sentAt = this.runtime.now();
    let replies: readonly QueueEntryReply[] | undefined;
    try {
      replies = await this.requests.refreshEntries(
        entries.map((entry) => livingFor(entry.claim, this.aliveMs)),
      );
    } catch (failure) {
      // A caller with an entry goes on from here: it looks for itself, or waits for the store.
      replies = entries.map(() => ({ status: 'failed', cause: failure }));
    }
    for (const [i, entry] of entries.entries()) {
      const reply = replies?.[i];
      const onFailure = this.entries.get(entry);
      if (!reply || !onFailure) continue;
      if (reply.status === 'failed') onFailure(reply.cause);
      else entry.replied(reply, sentAt);
    }
  }

  /** Number of processes before it. Entries of single callers are refreshed together by their process. */
  private queuedBefore({ claim, position }: OwnEntry): number {
    return this.requests.traits(claim.kind).eachQueued ? 0 : position;
  }
}
