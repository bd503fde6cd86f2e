import { StoreFailure, textWithCause } from '../../core/seam/store-failure.js';
import { inSeconds } from './in-seconds.js';

/** For how long a node has to have failed before the log says so, in ms: a restart or another connection is no news. */
const TOLD_AFTER_MS = 5_000;

/** What an outage has to know of its node. */
export interface OutageHost {
  readonly name: string;
  now(): number;
  warn(warning: string): void;
}

/**
 * Whether a node fails at what it is asked. Once it has for 5 s, one line in the log says so, and another one when it works
 * again: while a majority works nobody else notices.
 */
export class NodeOutage {
  private last: StoreFailure | undefined;
  /** What is answered for it while it fails and one request tries whether it still does; made once for each failure. */
  private refusal: StoreFailure | undefined;
  private since = 0;
  private isTold = false;

  constructor(private readonly host: OutageHost) {}

  /** How it failed at what was asked last; undefined once it has answered again. */
  get failure(): StoreFailure | undefined {
    return this.last;
  }

  /** What a request gets that is not sent, since another one tries whether it still fails. */
  get instead(): StoreFailure {
    const { message, cause, passing } = this.last!;
    return (this.refusal ??= new StoreFailure(message, 'not-executed', { cause, passing }));
  }

  /** A refusal of one key or claim says nothing of the node. */
  failed(failure: unknown): void {
    if (!(failure instanceof StoreFailure) || failure.keyOnly || failure.claimOnly || failure.transient)
      return;
    const { host } = this;
    if (!this.last) this.since = host.now();
    this.last = failure;
    this.refusal = undefined;
    const forMs = host.now() - this.since;
    if (this.isTold || forMs < TOLD_AFTER_MS) return;
    this.isTold = true;
    host.warn(
      `The node ${host.name} of the quorum has not worked for ${inSeconds(forMs)}: ${textWithCause(failure)}. Locks go on while a majority does.`,
    );
  }

  works(): void {
    if (!this.last) return;
    this.last = undefined;
    this.refusal = undefined;
    if (!this.isTold) return;
    this.isTold = false;
    const { host } = this;
    host.warn(
      `The node ${host.name} of the quorum works again, after ${inSeconds(host.now() - this.since)}.`,
    );
  }
}
