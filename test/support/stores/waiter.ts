import { expect } from 'vitest';
import type { ExclusiveClaim } from '../../../lib/core/seam/claim.js';
import type { QueueEntry, QueueEntryOutcome } from '../../../lib/core/seam/queue-entry.js';
import type { QueueEntryReply, Queued } from '../../../lib/core/seam/reply.js';
import { MAX_YIELD_MS } from '../../../lib/stores/redis/kinds/exclusive/queue-functions.js';
import { until } from '../async.js';
import {
  claimFor,
  expectGranted,
  WakeUpCounter,
  newKey,
  newProcess,
  type ContractContext,
  type FullStore,
} from './harness.js';

/** For how long a place lives that nobody keeps: longer than a test runs. */
export const ALIVE_MS = 60_000;
/** For how long a hold is given that nobody has asked for in this moment. */
export const PROVISIONAL_LEASE_MS = 10_000;

/** One who stands in line, and does what the core does there. */
export class Waiter {
  /** What became of its place. */
  readonly notified: QueueEntryOutcome[] = [];
  /** What it was answered when it asked, unless that was that it stands in line still. */
  private found: QueueEntryReply['status'] | undefined;
  private handled = 0;
  /** When a moment is over in which the key is left to those who stand in no line: nobody tells of that. */
  private looksAt = Infinity;
  private missed = 0;

  constructor(
    readonly store: FullStore,
    readonly claim: ExclusiveClaim,
    readonly queued: Queued,
    private readonly wakeUps: WakeUpCounter,
  ) {
    this.entry.listen({
      notified: (outcome) => this.notified.push(outcome),
      missedNotification: () => {
        this.missed++;
      },
    });
  }

  get entry(): QueueEntry {
    return this.queued.entry;
  }

  /** Keeps its place, with other terms if they are given. */
  async keep(aliveMs = this.claim.entryTerms!.aliveMs): Promise<QueueEntryReply> {
    const claim = { ...this.claim, entryTerms: { ...this.claim.entryTerms!, aliveMs } };
    const [reply] = await this.store.kinds.exclusive.refreshEntries!([claim]);
    return reply!;
  }

  /** Asks because of all that it was hinted. */
  async look(): Promise<void> {
    this.handled = this.wakeUps.count + this.missed;
    const reply = await this.keep();
    this.looksAt = Infinity;
    if (reply.status !== 'queued') this.found = reply.status;
    else if (reply.retryInMs <= MAX_YIELD_MS) this.looksAt = performance.now() + reply.retryInMs;
  }

  /**
   * Resolves when its turn has come: "granted" when it was told so, "held" when it has found that out, because it was
   * hinted that the key may be free.
   */
  async grant(): Promise<'granted' | 'held'> {
    const how = await until(async () => {
      const isWoken = this.wakeUps.count + this.missed !== this.handled || performance.now() >= this.looksAt;
      if (this.notified.length === 0 && isWoken) await this.look();
      return this.notified[0]?.status ?? this.found;
    });
    this.wakeUps.watch.close();
    expect(['granted', 'held']).toContain(how);
    return how as 'granted' | 'held';
  }

  async release(): Promise<void> {
    this.wakeUps.watch.close();
    expect((await this.store.kinds.exclusive.release(this.claim)).wasHeld).toBe(true);
  }

  /** Gives up its place. */
  leave(): Promise<void> {
    this.wakeUps.watch.close();
    return this.entry.leave();
  }
}

/** One process with its store: its owners are named as the core names them. */
export class WaitingProcess {
  private readonly id = newProcess();
  private owners = 0;

  constructor(readonly store: FullStore) {}

  claim(key: string, overrides: Partial<ExclusiveClaim> = {}): ExclusiveClaim {
    return claimFor(key, { owner: `${this.id}:${++this.owners}`, ...overrides });
  }

  /** A claim whose caller waits. */
  waiting(key: string, overrides: Partial<ExclusiveClaim> = {}): ExclusiveClaim {
    const claim = this.claim(key, { waits: true, ...overrides });
    const terms = { aliveMs: ALIVE_MS, provisionalLeaseMs: PROVISIONAL_LEASE_MS, tokens: claim.tokens };
    return { ...claim, entryTerms: { ...terms, ...overrides.entryTerms } };
  }

  /** Takes a key that is free. */
  async take(key: string, overrides: Partial<ExclusiveClaim> = {}): Promise<ExclusiveClaim> {
    const claim = this.claim(key, overrides);
    expectGranted(await this.store.kinds.exclusive.acquire(claim));
    return claim;
  }

  /** Stands in line for a key that somebody has. */
  async enqueue(key: string, overrides: Partial<ExclusiveClaim> = {}): Promise<Waiter> {
    const claim = this.waiting(key, overrides);
    const reply = await this.store.kinds.exclusive.acquire(claim);
    expect(reply.status).toBe('queued');
    return this.waiter(claim, reply as Queued);
  }

  /** The same, for a claim that was put in line. */
  async waiter(claim: ExclusiveClaim, queued: Queued): Promise<Waiter> {
    const wakeUps = new WakeUpCounter(this.store, claim);
    const waiter = new Waiter(this.store, claim, queued, wakeUps);
    await wakeUps.until(() => wakeUps.watch.live);
    await waiter.look();
    return waiter;
  }

  /** Until now it may have had nothing on which it hears of its turn. */
  async subscribes(): Promise<this> {
    const key = newKey('ear');
    for (;;) {
      const holder = await this.take(key);
      const waiter = await this.enqueue(key);
      await this.store.kinds.exclusive.release(holder);
      const how = await waiter.grant();
      await waiter.release();
      if (how === 'granted') return this;
    }
  }
}

/** So many processes that hear of their turns. */
export const waitingProcesses = (context: ContractContext, count: number): Promise<WaitingProcess[]> =>
  Promise.all(
    Array.from({ length: count }, async () => new WaitingProcess(await context.connect()).subscribes()),
  );
