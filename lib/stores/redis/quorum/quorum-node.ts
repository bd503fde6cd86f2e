import { textOf } from '../../../core/util/describe.js';
import type { Undo } from '../../../core/lease/undo.js';
import type { Runtime } from '../../../core/util/runtime.js';
import type { LockKind } from '../../../core/kinds/kinds.js';
import type { Claim } from '../../../core/seam/claim.js';
import type { AcquireReply } from '../../../core/seam/reply.js';
import { StoreFailure } from '../../../core/seam/store-failure.js';
import type { ClockSeen } from './clocks.js';
import { NodeOutage, inSeconds } from './node-outage.js';
import type { NodeKind, NodeStore } from './node-store.js';
import { nodeUndo } from './node-undo.js';
import { ServerInfo, type Seen } from './server-info.js';

export interface NodeHost {
  readonly runtime: Runtime;
  /** Returns the uptime from which a server that was started then counts, in ms. */
  delayAfterStartMs(startedAt: number): number;
  /** Returns the name of an earlier node that is the same server; undefined when there is none. */
  sameAs(node: QuorumNode): string | undefined;
  /** Returns by how many ms the node's clock is too far off; undefined when it is not. */
  clockOff(node: QuorumNode): number | undefined;
  /** Returns by how many ms a token, and so the clock behind it, is too far ahead; undefined when it is not. */
  tokenAhead(tokenMs: number): number | undefined;
  /** Asks the node and a majority for their clocks. Resolves with by how many ms the node's is off, as `clockOff`. */
  lookAgain(node: QuorumNode): Promise<number | undefined>;
  /** Returns whether there is a majority without the nodes that fail at the moment. */
  hasEnoughWithoutFailing(): boolean;
  /** Receives a warning when the node begins to count as failed although it replies, and when it fails for long. */
  warn(warning: string): void;
}

/**
 * One node of a quorum, and whether it counts. A restarted server may have forgotten holds: it counts as failed until
 * the longest lease is over. A server whose clock is off counts as failed, too. Each new connection may lead to a
 * restarted server, so a request that was sent before it and replied to after it does not count either.
 */
export class QuorumNode {
  readonly undo: Undo;
  private readonly serverInfo: ServerInfo;
  private readonly outage: NodeOutage;
  private warned: string | undefined;
  /** Number of requests under way that were sent while the node failed. */
  private trials = 0;

  constructor(
    readonly name: string,
    readonly store: NodeStore,
    private readonly host: NodeHost,
  ) {
    this.serverInfo = new ServerInfo(store, host.runtime);
    this.outage = new NodeOutage({
      name,
      now: () => host.runtime.now(),
      warn: (warning) => host.warn(warning),
    });
    this.undo = nodeUndo(store, host.runtime, () => this.failing !== undefined);
  }

  /** Current info on its server; undefined until the server of this connection was asked. */
  get seen(): Seen | undefined {
    return this.serverInfo.seen;
  }

  /** Last known clock, perhaps from an earlier connection. */
  get lastClock(): ClockSeen | undefined {
    return this.serverInfo.lastClock;
  }

  /** Last failure; undefined once the node has replied again. */
  get failing(): StoreFailure | undefined {
    return this.outage.failure;
  }

  /** Whether it counts as failed although it replies. */
  get isDistrusted(): boolean {
    return this.distrust('not-executed') !== undefined;
  }

  /** Id of the run of its server, if known. */
  get serverId(): string | undefined {
    return this.serverInfo.seen?.serverId;
  }

  /** Records that there is a new connection. */
  connectedAgain(): void {
    this.serverInfo.connectedAgain();
  }

  /** Asks the server for its times, if its store can. */
  look(): Promise<void> {
    return this.serverInfo.look();
  }

  /**
   * Sends a request whose reply counts only while the node is trusted.
   *
   * While the node fails and there is a majority without it, only one request at a time is sent, to try whether it
   * still fails. Every other request would wait for a whole time-out, and what it may have left behind would have to be
   * released.
   */
  request<T>(request: () => Promise<T>): Promise<T> {
    const { outage } = this;
    const isTrial = outage.failure !== undefined;
    if (isTrial && this.trials > 0 && this.host.hasEnoughWithoutFailing()) {
      return Promise.reject(outage.instead);
    }
    const looked = this.serverInfo.lookWhereDue();
    const distrust = this.distrust('not-executed');
    if (distrust) {
      looked?.catch(() => undefined);
      return Promise.reject(distrust);
    }
    const { epoch } = this.serverInfo;
    let sent: Promise<T>;
    try {
      sent = request();
    } catch (bug) {
      sent = Promise.reject(bug);
    }
    if (isTrial) this.trials += 1;
    const noted = (reply: T): T => {
      if (isTrial) this.trials -= 1;
      outage.works();
      return looked ? reply : this.judged(reply, epoch);
    };
    const failed = (failure: unknown): never => {
      if (isTrial) this.trials -= 1;
      outage.failed(failure);
      throw failure;
    };
    // One promise for each request: there are several requests for each lock.
    const judgedReply = sent.then(noted, failed);
    return looked ? afterLook(judgedReply, looked).then((reply) => this.judged(reply, epoch)) : judgedReply;
  }

  /**
   * Acquires a key at the node. A token that is too far ahead counts only if the node's clock turns out to be right:
   * then a larger token was known there before. Otherwise the clock has jumped since the last look. That may also be the
   * clock that proposed the token: of two clocks that are known at present, neither counts as wrong.
   */
  acquire(claim: Claim): Promise<AcquireReply> {
    const { epoch } = this.serverInfo;
    const requested = this.request(() => kindAt(this, claim.kind).acquire(claim));
    if (claim.tokens === 0) return requested;
    return requested.then((reply) =>
      reply.status === 'granted' && this.isFarAhead(reply.token) ? this.whenRight(reply, epoch) : reply,
    );
  }

  private async whenRight(reply: AcquireReply, epoch: number): Promise<AcquireReply> {
    const off = await known(this.host.lookAgain(this), 'whether its clock is right');
    if (off !== undefined) throw this.clockFailure('unknown', off);
    return this.judged(reply, epoch);
  }

  private isFarAhead(token: number | undefined): boolean {
    const tokensPerMs = this.serverInfo.seen?.tokensPerMs;
    if (token === undefined || tokensPerMs === undefined) return false;
    return this.host.tokenAhead(token / tokensPerMs) !== undefined;
  }

  private judged<T>(reply: T, epoch: number): T {
    if (epoch !== this.serverInfo.epoch) {
      throw new StoreFailure('there was another connection before the answer came', 'unknown', {
        passing: true,
      });
    }
    const distrust = this.distrust('unknown');
    if (distrust) throw distrust;
    return reply;
  }

  /** Returns why the node counts as failed at the moment; undefined when it does not, or when that is unknown. */
  private distrust(outcome: 'not-executed' | 'unknown'): StoreFailure | undefined {
    const { host } = this;
    const { seen } = this.serverInfo;
    if (!seen) return undefined;
    const restsForMs = seen.startedAt + host.delayAfterStartMs(seen.startedAt) - host.runtime.now();
    if (restsForMs > 0) {
      const since = Math.max(0, host.runtime.now() - seen.startedAt);
      return this.failure(
        outcome,
        `its server was started ${inSeconds(since)} ago, and counts again in ${inSeconds(restsForMs)} (delayAfterRestartMs)`,
        'restarted',
      );
    }
    const duplicate = host.sameAs(this);
    if (duplicate !== undefined) {
      return this.failure(outcome, `it is the same server as ${duplicate}, which has a vote already`, 'twin');
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

/** Resolves with the reply once the server's times are known. If they stay unknown, so does the outcome. */
const afterLook = async <T>(sent: Promise<T>, looked: Promise<void>): Promise<T> => {
  const [reply, seen] = await Promise.allSettled([sent, known(looked, 'since when its server is up')]);
  if (reply.status === 'rejected') throw reply.reason;
  if (seen.status === 'rejected') throw seen.reason;
  return reply.value;
};

/** Resolves with what a look finds. Its failure leaves the outcome unknown: the request may have been executed. */
const known = async <T>(looked: Promise<T>, what: string): Promise<T> => {
  try {
    return await looked;
  } catch (cause) {
    const passing = cause instanceof StoreFailure && cause.passing;
    throw new StoreFailure(`it is not known ${what}: ${textOf(cause)}`, 'unknown', { cause, passing });
  }
};

/** Returns how a node keeps a kind. The constructor of the quorum rejects stores that lack it. */
export const kindAt = (node: QuorumNode, kind: LockKind): NodeKind => node.store.kinds[kind]!;
