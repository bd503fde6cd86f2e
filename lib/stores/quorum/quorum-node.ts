import { textOf } from '../../core/errors/describe.js';
import type { Runtime } from '../../core/runtime.js';
import type { LockKind } from '../../core/kinds/kinds.js';
import type { KindStore, LockStore } from '../../core/seam/lock-store.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import type { ClockSeen } from './clocks.js';

/** How old what is known of a server may be, in ms: then it is asked again beside a request, or before one counts. */
const LOOK_AGAIN_MS = 10_000;
const LOOK_FIRST_MS = 60_000;

/** What a node has to know of the quorum that it is in. */
export interface NodeHost {
  readonly runtime: Runtime;
  /** For how long a server has to be up before it counts, in ms. */
  readonly delayAfterRestartMs: number;
  /** The name of a node before this one that is the same server. */
  sameAs(node: QuorumNode): string | undefined;
  /** By how many ms the node's clock is too far off; undefined when it is not. */
  clockOff(node: QuorumNode): number | undefined;
  /** Told once for each time that a node counts as failed although it answers. */
  warn(warning: string): void;
}

/** What is known of a server. */
interface Seen {
  readonly at: number;
  /** It was started then at the latest, on the runtime's clock. */
  readonly startedAt: number;
  readonly clock: ClockSeen;
  readonly serverId: string | undefined;
}

/**
 * One node of a quorum, and whether it counts. A server that has restarted may have forgotten holds: until the longest lease
 * is over it counts as failed. So does one whose clock is off. Each new connection may lead to a server that has restarted:
 * what was asked for before it and answered after it does not count either.
 */
export class QuorumNode {
  private era = 0;
  private seen: Seen | undefined;
  private looking: Promise<void> | undefined;
  private warned: string | undefined;
  private lastFailure: StoreFailure | undefined;

  constructor(
    readonly name: string,
    readonly store: LockStore,
    private readonly host: NodeHost,
  ) {}

  /** What is known of its clock. */
  get clock(): ClockSeen | undefined {
    return this.seen?.clock;
  }

  /** How it failed at what was asked last; undefined once it has answered again. */
  get failing(): StoreFailure | undefined {
    return this.lastFailure;
  }

  /** Names the run of its server, as far as that is known. */
  get serverId(): string | undefined {
    return this.seen?.serverId;
  }

  /** There is another connection to it. */
  connectedAgain(): void {
    this.era += 1;
    this.seen = undefined;
    this.looking = undefined;
  }

  /** Asks it for something that counts only while it is trusted. */
  ask<T>(request: () => Promise<T>): Promise<T> {
    const looked = this.lookWhereDue();
    const distrust = this.distrust('not-executed');
    if (distrust) {
      looked?.catch(() => undefined);
      return Promise.reject(distrust);
    }
    const { era } = this;
    let answer: Promise<T>;
    try {
      answer = request();
    } catch (bug) {
      answer = Promise.reject(bug);
    }
    answer.then(
      () => (this.lastFailure = undefined),
      (failure: unknown) => this.failed(failure),
    );
    return this.judged(looked ? withKnowledge(answer, looked) : answer, era);
  }

  /** A refusal of one key or claim says nothing of the node. */
  private failed(failure: unknown): void {
    if (!(failure instanceof StoreFailure) || failure.keyOnly || failure.claimOnly || failure.transient)
      return;
    this.lastFailure = failure;
  }

  private judged<T>(answer: Promise<T>, era: number): Promise<T> {
    return answer.then((reply) => {
      if (era !== this.era) {
        throw new StoreFailure('there was another connection before the answer came', 'unknown');
      }
      const distrust = this.distrust('unknown');
      if (distrust) throw distrust;
      return reply;
    });
  }

  /** Why it counts as failed at the moment, as far as that is known. */
  private distrust(outcome: 'not-executed' | 'unknown'): StoreFailure | undefined {
    const { seen, host } = this;
    if (!seen) return undefined;
    const restsForMs = seen.startedAt + host.delayAfterRestartMs - host.runtime.now();
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
    if (off !== undefined) {
      const where = off > 0 ? 'ahead of' : 'behind';
      return this.failure(
        outcome,
        `its clock is ${inSeconds(Math.abs(off))} ${where} those of the other nodes, and counts again when it is right`,
        'clock',
      );
    }
    this.warned = undefined;
    return undefined;
  }

  private failure(outcome: 'not-executed' | 'unknown', why: string, reason: string): StoreFailure {
    if (this.warned !== reason) {
      this.warned = reason;
      this.host.warn(`The node ${this.name} of the quorum counts as failed: ${why}.`);
    }
    return new StoreFailure(why, outcome);
  }

  /** Asks the server for its times where they are not known, or old. What counts only with them has to wait for that. */
  private lookWhereDue(): Promise<void> | undefined {
    const { store, seen, host } = this;
    if (!store.serverTimes) return undefined;
    const age = seen ? host.runtime.now() - seen.at : Infinity;
    if (age < LOOK_AGAIN_MS) return undefined;
    this.looking ??= this.look();
    if (age >= LOOK_FIRST_MS) return this.looking;
    this.looking.catch(() => undefined);
    return undefined;
  }

  private look(): Promise<void> {
    const { era, host } = this;
    const sentAt = host.runtime.now();
    const looking = this.store.serverTimes!().then(
      ({ upForMs, clockMs, serverId }) => {
        if (this.looking === looking) this.looking = undefined;
        if (era !== this.era) return;
        const now = host.runtime.now();
        const uncertainMs = (now - sentAt) / 2;
        const clock = { aheadMs: clockMs - (sentAt + uncertainMs), uncertainMs };
        this.seen = { at: now, startedAt: now - upForMs, clock, serverId };
      },
      (failure: unknown) => {
        if (this.looking === looking) this.looking = undefined;
        throw failure;
      },
    );
    return looking;
  }
}

/** Of what is known only now nothing may be missing. What was asked meanwhile may have been done all the same. */
const withKnowledge = async <T>(answer: Promise<T>, looked: Promise<void>): Promise<T> => {
  const [reply, known] = await Promise.allSettled([answer, looked]);
  if (reply.status === 'rejected') throw reply.reason;
  if (known.status === 'fulfilled') return reply.value;
  const cause: unknown = known.reason;
  throw new StoreFailure(`it is not known since when its server is up: ${textOf(cause)}`, 'unknown', {
    cause,
  });
};

const inSeconds = (ms: number): string => `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;

/** When that is, as a person reads it. */
const at = (inMs: number): string => `at ${new Date(Date.now() + inMs).toISOString()}, in ${inSeconds(inMs)}`;

/** How a node keeps a kind; a store that lacks it was refused when the quorum was made. */
export const kindAt = (node: QuorumNode, kind: LockKind): KindStore => node.store.kinds[kind]!;
