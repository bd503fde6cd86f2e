import { StoreFailure, textWithCause } from '../../../core/seam/store-failure.js';

/** Formats a time in seconds, for people. */
export const inSeconds = (ms: number): string => `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;

/** Duration of an outage before it is logged, in ms: a restart or a new connection is not worth a line. */
const REPORTED_AFTER_MS = 5_000;

export interface OutageHost {
  readonly name: string;
  now(): number;
  warn(warning: string): void;
}

/** Returns whether the node has failed. A refusal of one key or claim, or an overload, says nothing about it. */
export const isOfNode = (failure: unknown): failure is StoreFailure =>
  failure instanceof StoreFailure && !failure.keyOnly && !failure.transient && !failure.overloaded;

/**
 * The outage of a node. After 5 s of failures it logs a line, and another one when the node works again: while a
 * majority works, callers notice nothing.
 */
export class NodeOutage {
  private last: StoreFailure | undefined;
  /** Failure of requests that are not sent because another one tries the node; made once for each failure. */
  private refusal: StoreFailure | undefined;
  private since = 0;
  private isReported = false;

  constructor(private readonly host: OutageHost) {}

  /** Last failure; undefined once the node has replied again. */
  get failure(): StoreFailure | undefined {
    return this.last;
  }

  /** Failure of a request that is not sent because another one tries whether the node still fails. */
  get instead(): StoreFailure {
    const { message, cause, passing } = this.last!;
    return (this.refusal ??= new StoreFailure(message, 'not-executed', { cause, passing }));
  }

  /** Records a failure. */
  failed(failure: unknown): void {
    if (!isOfNode(failure)) return;
    const { host } = this;
    if (!this.last) this.since = host.now();
    this.last = failure;
    this.refusal = undefined;
    const forMs = host.now() - this.since;
    if (this.isReported || forMs < REPORTED_AFTER_MS) return;
    this.isReported = true;
    host.warn(
      `The node ${host.name} of the quorum has not worked for ${inSeconds(forMs)}: ${textWithCause(failure)}. Locks go on while a majority does.`,
    );
  }

  works(): void {
    if (!this.last) return;
    this.last = undefined;
    this.refusal = undefined;
    if (!this.isReported) return;
    this.isReported = false;
    const { host } = this;
    host.warn(
      `The node ${host.name} of the quorum works again, after ${inSeconds(host.now() - this.since)}.`,
    );
  }
}
