import { textOf } from '../../core/errors/describe.js';
import type { Runtime } from '../../core/runtime.js';
import type { LockKind } from '../../core/kinds/kinds.js';
import type { Claim } from '../../core/seam/claim.js';
import type { KindStore, LockStore } from '../../core/seam/lock-store.js';
import type { AcquireReply } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import type { ClockSeen } from './clocks.js';
import { inSeconds } from './in-seconds.js';
import { NodeOutage } from './node-outage.js';
import { ServerSight } from './server-sight.js';

/** What a node has to know of the quorum that it is in. */
export interface NodeHost {
  readonly runtime: Runtime;
  /** For how long a server that was started then has to be up before it counts, in ms. */
  delayAfterStartMs(startedAt: number): number;
  /** The name of a node before this one that is the same server. */
  sameAs(node: QuorumNode): string | undefined;
  /** By how many ms the node's clock is too far off; undefined when it is not. */
  clockOff(node: QuorumNode): number | undefined;
  /** By how many ms a token is too far ahead, which says that of its clock; undefined when it is not. */
  tokenAhead(tokenMs: number): number | undefined;
  /** Looks anew at the node's clock, and at so many others that it is certain then by how many ms it is too far off. */
  lookAgain(node: QuorumNode): Promise<number | undefined>;
  /** Whether a majority can be had without those that fail at the moment. */
  hasEnoughWithoutFailing(): boolean;
  /** Told once for each time that a node counts as failed although it answers, and when one has not worked for long. */
  warn(warning: string): void;
}

/**
 * One node of a quorum, and whether it counts. A server that has restarted may have forgotten holds: until the longest lease
 * is over it counts as failed. So does one whose clock is off. Each new connection may lead to a server that has restarted:
 * what was asked for before it and answered after it does not count either.
 */
export class QuorumNode {
  private readonly sight: ServerSight;
  private readonly outage: NodeOutage;
  private warned: string | undefined;
  /** Requests under way that were sent while it failed. */
  private trials = 0;

  constructor(
    readonly name: string,
    readonly store: LockStore,
    private readonly host: NodeHost,
  ) {
    this.sight = new ServerSight(store, host.runtime);
    this.outage = new NodeOutage({
      name,
      now: () => host.runtime.now(),
      warn: (warning) => host.warn(warning),
    });
  }

  /** What is known of its clock. */
  get clock(): ClockSeen | undefined {
    return this.sight.seen?.clock;
  }

  /** What was last known of its clock, be it over another connection. */
  get lastClock(): ClockSeen | undefined {
    return this.sight.lastClock;
  }

  /** How it failed at what was asked last; undefined once it has answered again. */
  get failing(): StoreFailure | undefined {
    return this.outage.failure;
  }

  /** Whether it counts as failed although it answers. */
  get isDistrusted(): boolean {
    return this.distrust('not-executed') !== undefined;
  }

  /** Names the run of its server, as far as that is known. */
  get serverId(): string | undefined {
    return this.sight.seen?.serverId;
  }

  /** There is another connection to it. */
  connectedAgain(): void {
    this.sight.connectedAgain();
  }

  /** Asks the server for its times, if its store can. */
  look(): Promise<void> {
    return this.sight.look();
  }

  /**
   * Asks it for something that counts only while it is trusted. Where it failed at what was asked last, and a majority can be had
   * without it, one request at a time tries whether that is still so, and no other is sent: each would wait for as long as a
   * time-out, and what it may have left behind would have to be given back.
   */
  ask<T>(request: () => Promise<T>): Promise<T> {
    const { outage } = this;
    const isTrial = outage.failure !== undefined;
    if (isTrial && this.trials > 0 && this.host.hasEnoughWithoutFailing()) {
      return Promise.reject(outage.instead);
    }
    const looked = this.sight.lookWhereDue();
    const distrust = this.distrust('not-executed');
    if (distrust) {
      looked?.catch(() => undefined);
      return Promise.reject(distrust);
    }
    const { era } = this.sight;
    let answer: Promise<T>;
    try {
      answer = request();
    } catch (bug) {
      answer = Promise.reject(bug);
    }
    if (isTrial) this.trials += 1;
    const noted = (reply: T): T => {
      if (isTrial) this.trials -= 1;
      outage.works();
      return looked ? reply : this.judged(reply, era);
    };
    const failed = (failure: unknown): never => {
      if (isTrial) this.trials -= 1;
      outage.failed(failure);
      throw failure;
    };
    // One promise for each request: there are several requests for each lock.
    const heard = answer.then(noted, failed);
    return looked ? afterLook(heard, looked).then((reply) => this.judged(reply, era)) : heard;
  }

  /**
   * Takes a key there. A token further ahead than those of right clocks counts only when the clock that it is from turns out to
   * be right: then a larger one was known there before. Else it has jumped since it was looked at.
   */
  acquire(claim: Claim): Promise<AcquireReply> {
    const { era } = this.sight;
    const asked = this.ask(() => kindAt(this, claim.kind).acquire(claim));
    if (claim.tokens === 0) return asked;
    return asked.then((reply) =>
      reply.status === 'granted' && this.isFarAhead(reply.token) ? this.whenRight(reply, era) : reply,
    );
  }

  private async whenRight(reply: AcquireReply, era: number): Promise<AcquireReply> {
    const off = await known(this.host.lookAgain(this), 'whether its clock is right');
    if (off !== undefined) throw this.clockFailure('unknown', off);
    return this.judged(reply, era);
  }

  private isFarAhead(token: number | undefined): boolean {
    const tokensPerMs = this.sight.seen?.tokensPerMs;
    if (token === undefined || tokensPerMs === undefined) return false;
    return this.host.tokenAhead(token / tokensPerMs) !== undefined;
  }

  private judged<T>(reply: T, era: number): T {
    if (era !== this.sight.era) {
      throw new StoreFailure('there was another connection before the answer came', 'unknown', {
        passing: true,
      });
    }
    const distrust = this.distrust('unknown');
    if (distrust) throw distrust;
    return reply;
  }

  /** Why it counts as failed at the moment, as far as that is known. */
  private distrust(outcome: 'not-executed' | 'unknown'): StoreFailure | undefined {
    const { host } = this;
    const { seen } = this.sight;
    if (!seen) return undefined;
    const restsForMs = seen.startedAt + host.delayAfterStartMs(seen.startedAt) - host.runtime.now();
    if (restsForMs > 0) {
      const since = Math.max(0, host.runtime.now() - seen.startedAt);
      return this.failure(
        outcome,
        `its server was started ${inSeconds(since)} ago, and counts again ${at(restsForMs)} (delayAfterRestartMs)`,
        'restarted',
      );
    }
    const twin = host.sameAs(this);
    if (twin !== undefined) {
      return this.failure(outcome, `it is the same server as ${twin}, which has a vote already`, 'twin');
    }
    const off = host.clockOff(this);
    if (off !== undefined) return this.clockFailure(outcome, off);
    this.warned = undefined;
    return undefined;
  }

  private clockFailure(outcome: 'not-executed' | 'unknown', off: number): StoreFailure {
    const where = off > 0 ? 'ahead of' : 'behind';
    return this.failure(
      outcome,
      `its clock is ${inSeconds(Math.abs(off))} ${where} those of the other nodes, and counts again when it is right`,
      'clock',
    );
  }

  private failure(outcome: 'not-executed' | 'unknown', why: string, reason: string): StoreFailure {
    if (this.warned !== reason) {
      this.warned = reason;
      this.host.warn(`The node ${this.name} of the quorum counts as failed: ${why}.`);
    }
    return new StoreFailure(why, outcome, { passing: reason === 'restarted' });
  }
}

/** Of what is known only now nothing may be missing. What was asked meanwhile may have been done all the same. */
const afterLook = async <T>(answer: Promise<T>, looked: Promise<void>): Promise<T> => {
  const [reply, seen] = await Promise.allSettled([answer, known(looked, 'since when its server is up')]);
  if (reply.status === 'rejected') throw reply.reason;
  if (seen.status === 'rejected') throw seen.reason;
  return reply.value;
};

/** What a look finds out. Without it what was asked before may have been done all the same. */
const known = async <T>(looked: Promise<T>, what: string): Promise<T> => {
  try {
    return await looked;
  } catch (cause) {
    const passing = cause instanceof StoreFailure && cause.passing;
    throw new StoreFailure(`it is not known ${what}: ${textOf(cause)}`, 'unknown', { cause, passing });
  }
};

/** When that is, as a person reads it. */
const at = (inMs: number): string => `at ${new Date(Date.now() + inMs).toISOString()}, in ${inSeconds(inMs)}`;

/** How a node keeps a kind; a store that lacks it was refused when the quorum was made. */
export const kindAt = (node: QuorumNode, kind: LockKind): KindStore => node.store.kinds[kind]!;
