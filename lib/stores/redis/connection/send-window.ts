import type { Runtime } from '../../../core/util/runtime.js';
import type { Grant } from '../../../core/seam/grant.js';
import type { StoreFailure } from '../../../core/seam/store-failure.js';
import { Load } from '../../load/load.js';
import { UnsentRequests, type Unsent } from '../../load/unsent-requests.js';
import { type OfClaim, runsOf, type RedisRequest } from './script.js';
import type { Urgency } from '../../load/request-queue.js';
import { MAX_RUNS, type ScriptRun } from './script-batch.js';

/**
 * Number of runs that are under way at most: at first, the least, and the most. With 1,024 as the most, 5,000 callers
 * on a fast server got half as many locks, because queueing cost the processor as much as sending.
 */
const FIRST = 64;
const LEAST = 16;
const MOST = 8_192;
/** Part of the command time-out by which a reply may be later than the fastest one, before the window narrows. */
const LATE = 1 / 8;

/** A request that waits for the window: a run, or something else that is sent by itself. */
interface Waiting extends Unsent {
  readonly run?: ScriptRun;
  readonly send?: () => void;
  /** As how many runs it counts. */
  readonly runs: number;
  sentAt: number;
}

export interface SendWindowHost {
  readonly runtime: Runtime;
  readonly timeoutMs: number;
  /** See `UnsentHost`. */
  trouble(): StoreFailure | undefined;
  silentForMs(): number;
  sendRuns(runs: readonly ScriptRun[]): void;
}

/**
 * Limits how much is under way on one connection. Otherwise renewals would wait in a slow server behind all that the process
 * asks for. Waiting requests are sent in the order of their urgency.
 *
 * Algorithm: as of TCP Vegas. While requests wait, each reply in time widens the window, up to double in each round trip. A
 * reply that is late against the fastest one halves it, once in each round trip.
 */
export class SendWindow {
  private readonly unsent: UnsentRequests<Waiting>;
  private underWay = 0;
  private size = FIRST;
  private fastestMs = Infinity;
  private narrowedAt = -Infinity;

  constructor(private readonly host: SendWindowHost) {
    const { runtime, timeoutMs } = host;
    this.unsent = new UnsentRequests<Waiting>({
      ...{ name: 'Redis', runtime, timeoutMs, load: new Load() },
      trouble: () => host.trouble(),
      silentForMs: () => host.silentForMs(),
      next: () => this.drain(),
    });
  }

  /** Whether a request may be sent at once. */
  get isOpen(): boolean {
    return this.underWay < this.size && this.unsent.all.size === 0;
  }

  /**
   * Sends a run with others when its turn comes. The time that it has is that of its claim from then on: see {@link
   * wait}.
   */
  addRun(run: ScriptRun): void {
    const { part, keys, claim, resolve, reject } = run;
    const unsent = this.unsentOf(part.script.urgency, keys, claim, reject);
    const request: Waiting = {
      ...unsent,
      run: {
        ...run,
        claim: { ...claim, until: unsent.until },
        resolve: (reply) => resolve(counted(reply, request.sentAt)),
      },
      ...{ runs: 1, sentAt: 0 },
    };
    this.add(request);
  }

  /**
   * Calls `send` when its turn comes, with the time that the request has: it may have to wait again, for a new connection. A
   * granted reply says since when it counts.
   */
  wait<T>(asked: RedisRequest<T>, send: (request: RedisRequest<T>) => Promise<T>): Promise<T> {
    const { urgency, keys, claim } = asked;
    return new Promise<T>((resolve, reject) => {
      const request: Waiting = {
        ...this.unsentOf(urgency, keys, claim, reject),
        send: () =>
          void send({ ...asked, claim: { ...claim, until: request.until } }).then(
            (reply) => resolve(counted(reply, request.sentAt)),
            reject,
          ),
        ...{ runs: runsOf(asked), sentAt: 0 },
      };
      this.add(request);
    });
  }

  /** A number of runs is sent. */
  sent(runs: number): void {
    this.underWay += runs;
  }

  /** A number of runs has its reply, or has failed. */
  replied(runs: number, sentAt: number): void {
    this.underWay -= runs;
    if (this.unsent.all.size === 0) return;
    this.resize(runs, sentAt);
    this.drain();
  }

  /** The connection has ended: nothing is under way, and what waits is sent on the next one. */
  reset(): void {
    this.underWay = 0;
    this.size = FIRST;
    this.fastestMs = Infinity;
    this.drain(Infinity);
  }

  /** See `KindStore.unsent`. */
  failureOf(name: string, owner: string): StoreFailure | undefined {
    return this.unsent.failureOf(name, owner);
  }

  /** A release withdraws the acquire of its owner. It has no owner itself: another release would withdraw it. */
  private unsentOf(
    urgency: Urgency | undefined,
    [line = '']: readonly string[] = [],
    claim: OfClaim | undefined,
    reject: Unsent['reject'],
  ): Unsent {
    const { unsent } = this;
    if (urgency !== 'release') return unsent.request({ urgency, lines: [line], ...claim }, reject);
    if (claim?.owner !== undefined) unsent.withdraw(line, claim.owner);
    return unsent.request({ urgency, lines: [line], until: claim?.until }, reject);
  }

  private add(request: Waiting): void {
    if (this.unsent.add(request)) this.unsent.wait(request);
  }

  private resize(runs: number, sentAt: number): void {
    const { runtime, timeoutMs } = this.host;
    const now = runtime.now();
    const tookMs = now - sentAt;
    this.fastestMs = Math.min(this.fastestMs, tookMs);
    if (tookMs - this.fastestMs <= timeoutMs * LATE) this.size = Math.min(MOST, this.size + runs);
    else if (sentAt >= this.narrowedAt) {
      this.narrowedAt = now;
      // So few cannot make it late: the server is farther away than it was.
      if (this.size === LEAST) this.fastestMs = tookMs;
      this.size = Math.max(LEAST, this.size >> 1);
    }
  }

  private drain(size = this.size): void {
    const now = this.host.runtime.now();
    // In full requests: one with many runs costs little more than one with a single run.
    while (size - this.underWay >= MAX_RUNS || this.underWay === 0) if (!this.sendSome(now)) return;
  }

  /** Sends as many as may share a request. Returns false when none waits. */
  private sendSome(now: number): boolean {
    const { unsent, host } = this;
    const runs: ScriptRun[] = [];
    const flush = (): void => {
      if (runs.length > 0) host.sendRuns(runs.splice(0));
    };
    let count = 0;
    for (let request; count < MAX_RUNS && (request = unsent.next(now)); count += request.runs) {
      unsent.forget(request);
      request.sentAt = now;
      if (request.run) runs.push(request.run);
      else {
        flush();
        request.send?.();
      }
    }
    flush();
    return count > 0;
  }
}

/** A grant counts from the sending of its request, not from the call. */
const counted = <T>(reply: T, sentAt: number): T => (isGrant(reply) ? { ...reply, since: sentAt } : reply);

const isGrant = (reply: unknown): reply is Grant =>
  (reply as Partial<Grant> | undefined)?.status === 'granted';
