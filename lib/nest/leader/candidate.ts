import { oneLine, readOf, textOf } from '../../core/util/describe.js';
import { LockError, type LockErrorCode } from '../../core/errors/lock.errors.js';
import type { Lease } from '../../core/lease/lease.js';
import type { LockManager } from '../../core/service/lock-manager.js';
import { printsOnly } from '../../core/util/printing.js';
import { unbound } from '../../core/util/runtime.js';
import type { LockCall } from '../../core/settings/lock-call.js';
import type { ShownKey } from '../../core/util/shown-key.js';
import { waitFor } from '../../core/util/wait-for.js';
import { Term, type Ended, type Leadership } from './leadership.js';

/** Function that runs each time this process becomes the leader. */
export type LeaderFunction = (leadership: Leadership) => unknown;

/**
 * This process as a candidate for a leadership.
 *
 * @example if (candidate.isLeader) await this.reports.send();
 */
export interface Candidate extends AsyncDisposable {
  /** Key of the leadership, as the caller wrote it. */
  readonly key: string;
  /** Whether this process leads at this moment. It is false before another process can be the leader. */
  readonly isLeader: boolean;
  /**
   * Ends the candidacy, and the leadership: `signal` aborts. Resolves when the function has settled and the lock is released.
   * Do not await it in the function itself, which would wait for its own end: use `resign()` there. Never rejects.
   */
  stop(): Promise<void>;
}

/** Limits of the pause after a failure, in ms. */
const MIN_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;

/** Codes of errors that the next attempt would meet again. */
const HOPELESS: ReadonlySet<LockErrorCode> = new Set(['LOCK_CONFIGURATION', 'LOCK_KEY_INVALID']);

const codeOf = (error: unknown): LockErrorCode | undefined =>
  readOf(() => (error instanceof LockError ? error.code : undefined));

/** Returns the text of an error of the work, with its stack if it has one. */
const withStack = (error: unknown): string =>
  readOf(() => (error instanceof Error ? error.stack : undefined)) ?? textOf(error);

/** Contends for one lock, and calls its function while it holds it: one call at a time. */
export class LeaderCandidate implements Candidate {
  private readonly stopping = new AbortController();
  private term: Term | undefined;
  private lease: Lease | undefined;
  /** The loop, or in a test the leadership. */
  private running: Promise<unknown> | undefined;

  constructor(
    private readonly manager: LockManager,
    readonly key: string,
    private readonly call: LockCall,
    private readonly lead: LeaderFunction,
    private readonly over: (candidate: LeaderCandidate) => void,
    private readonly callNow = () => call,
  ) {
    const stopListening = manager.surroundings.onStop(() => this.end('shutdown'));
    this.stopping.signal.addEventListener('abort', stopListening, { once: true });
  }

  get label(): string {
    return this.call.label;
  }

  get isLeader(): boolean {
    return this.term?.isValid ?? false;
  }

  /** Lease of the leadership, until it is released. */
  get currentLease(): Lease | undefined {
    return this.lease;
  }

  /** Resolves when the last call of the function has settled, and its lock is released. */
  async settled(): Promise<void> {
    await this.running;
  }

  async stop(): Promise<void> {
    this.end('stopped');
    await this.running;
    this.over(this);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** Starts the loop, outside of the caller's asynchronous context: it outlives the call. */
  start(): void {
    this.running = unbound(() => this.contend()).finally(() => {
      this.stopping.abort();
      this.over(this);
    });
  }

  /** Leads once, for a test. Resolves when the function was called, or rejects if it failed at once. */
  async electOnce(): Promise<void> {
    const startedAt = this.manager.now();
    const lease = await this.acquire();
    const leading = unbound(() => this.leadWith(lease, startedAt));
    this.running = leading;
    const { runtime } = this.manager.surroundings;
    const begun = new Promise<undefined>((resolve) => runtime.soon(() => resolve(undefined)));
    const ended = await Promise.race([leading, begun]);
    if (ended?.reason === 'rejected') throw ended.cause;
  }

  /** Contends, leads, and contends again, until this process stops or an error makes that pointless. Never rejects. */
  private async contend(): Promise<void> {
    let failures = 0;
    let vain = 0;
    while (!this.isStopped) {
      const startedAt = this.manager.now();
      let lease: Lease;
      try {
        lease = await this.acquire();
      } catch (error) {
        if (this.isStopped || codeOf(error) === 'LOCK_SHUTDOWN') return;
        if (HOPELESS.has(codeOf(error)!)) return this.gaveUp(error);
        await this.pauseAfterNoElection(error, (vain += 1));
        continue;
      }
      vain = 0;
      if (this.isStopped) return lease[Symbol.asyncDispose]();
      const electedAt = this.manager.now();
      const { reason, cause } = await this.leadWith(lease, startedAt);
      const ledMs = this.manager.now() - electedAt;
      if (reason === 'rejected') {
        if (codeOf(cause) === 'LOCK_CONFIGURATION') return this.gaveUp(cause);
        failures = ledMs < MAX_PAUSE_MS ? failures + 1 : 1;
        await this.pauseAfterRejection(cause, failures);
      } else {
        failures = 0;
        // The others go first, also in a store without a wait queue.
        if (reason === 'resigned') await this.pause(this.pauseMs(1));
      }
    }
  }

  private async acquire(): Promise<Lease> {
    return this.manager.acquire([this.key], { ...this.callNow(), signal: this.stopping.signal });
  }

  /** Leads until the leadership has ended and the function has settled, and then releases the lock. Never rejects. */
  private async leadWith(lease: Lease, startedAt: number): Promise<Ended> {
    const electedAt = this.manager.now();
    const ended = new Promise<Ended>((resolve) => {
      const term = new Term(lease, (end) => {
        this.lost(end, electedAt);
        resolve(end);
      });
      this.lease = lease;
      this.term = term;
      this.elected(lease, electedAt - startedAt);
      term.followLock();
    });
    const term = this.term!;
    if (!term.ended) await this.work(term, lease);
    await ended;
    while (lease.entered) await lease.entered.emptied();
    await lease[Symbol.asyncDispose]();
    this.lease = undefined;
    return ended;
  }

  /** Calls the function. Its result does not end the leadership; its error does. */
  private async work(term: Term, lease: Lease): Promise<void> {
    try {
      await lease.run(() => this.lead(term));
    } catch (error) {
      if (term.end('rejected', error) || isAbort(error, term.signal)) return;
      this.logger.error(`${this.name}: the leader failed after the end: ${withStack(error)}`);
    }
  }

  private end(reason: 'stopped' | 'shutdown'): void {
    this.stopping.abort();
    this.term?.end(reason);
  }

  private get isStopped(): boolean {
    return this.stopping.signal.aborted;
  }

  private elected(lease: Lease, waitedMs: number): void {
    const { events } = this.manager.surroundings;
    const { hold } = lease.parts[0]!;
    events.emit('leader-elected', () => ({
      ...this.about,
      waitedMs: Math.round(waitedMs),
      fencingToken: hold.token,
    }));
    this.logger.log(`${this.name}: this process leads now.`);
  }

  private lost(ended: Ended, electedAt: number): void {
    const ledMs = Math.round(this.manager.now() - electedAt);
    this.manager.surroundings.events.emit('leader-lost', () => ({ ...this.about, ledMs, ...ended }));
    this.logger.log(`${this.name}: this process leads no longer, after ${ledMs} ms (${ended.reason}).`);
  }

  private pauseAfterRejection(cause: unknown, failures: number): Promise<void> {
    const ms = this.pauseMs(failures);
    this.logger.error(
      `${this.name}: the leader failed. This process contends again in ${ms} ms. ${withStack(cause)}`,
    );
    return this.pause(ms);
  }

  /** The store failed. In an outage this is logged once, and the pause does not grow: the next leader is wanted soon. */
  private pauseAfterNoElection(error: unknown, times: number): Promise<void> {
    if (times === 1) {
      this.logger.warn(
        `${this.name}: this process cannot contend now, and tries again each second or two. ${oneLine(textOf(error))}`,
      );
    }
    return this.pause(this.pauseMs(1));
  }

  private gaveUp(error: unknown): void {
    this.logger.error(
      `${this.name}: this process does not contend any more, because of a mistake in its configuration. ${withStack(error)}`,
    );
  }

  /** Returns a pause that doubles with each failure, between half of it and all, so that processes do not meet. */
  private pauseMs(failures: number): number {
    const longest = Math.min(MAX_PAUSE_MS, MIN_PAUSE_MS * 2 ** failures);
    return Math.round((longest / 2) * (1 + this.manager.surroundings.runtime.random()));
  }

  private pause(ms: number): Promise<void> {
    return waitFor<void>(this.manager.surroundings.runtime, {
      ms,
      signal: this.stopping.signal,
      onTime: (pause) => pause.resolve(),
      onAbort: (pause) => pause.resolve(),
    });
  }

  private get about(): { key: ShownKey; kind: 'exclusive'; label: string } {
    return { key: this.manager.shown(this.key), kind: 'exclusive', label: this.label };
  }

  private get name(): string {
    return `Leader of "${this.manager.shown(this.key)}"`;
  }

  private get logger(): LockManager['surroundings']['logger'] {
    return this.manager.surroundings.logger;
  }
}

printsOnly(LeaderCandidate, ({ label, isLeader }) => ({ label, isLeader }));

/** Returns whether an error is what the abort of the signal leads to. */
const isAbort = (error: unknown, { reason }: AbortSignal): boolean =>
  error === reason ||
  readOf(() => error instanceof Error && (error.name === 'AbortError' || error.cause === reason)) === true;
