import type { Hold } from '../lease/hold.js';
import type { WaitFor, Waiting } from '../util/wait-for.js';
import { deadlineOf, type Wait } from '../wait/wait.js';
import type { Blocking } from '../seam/reply.js';

/** What a caller needs of the local queue that it waits in. */
export interface WaiterQueue {
  readonly finalKey: string;
  readonly blocking: Blocking | undefined;
  now(): number;
  waits(waiter: Waiter): void;
  waitsNoMore(waiter: Waiter): void;
  /** Returns for how long it goes on waiting, in ms. */
  timeIsOver(waiter: Waiter): number;
  aborted(waiter: Waiter): void;
  aheadOf(waiter: Waiter): number | undefined;
}

/** Caller in a local queue. */
export class Waiter implements WaitFor<Hold | undefined> {
  private waiting: Waiting<Hold | undefined> | undefined;

  constructor(
    readonly queue: WaiterQueue,
    readonly wait: Wait,
    /** See `KeyOutage.arrive`. */
    readonly number: number,
    /** Lease length with which it may take over the hold of the caller before it; undefined: it may not. */
    readonly watchdogMs: number | undefined,
    /** Whether it is a concurrent contender. It keeps its position in the queue in case that its request is rejected. */
    public requesting: boolean,
  ) {}

  get ms(): number {
    return deadlineOf(this.wait) - this.queue.now();
  }

  get signal(): AbortSignal | undefined {
    return this.wait.signal;
  }

  listen(waiting: Waiting<Hold | undefined>): void {
    this.waiting = waiting;
    this.queue.waits(this);
  }

  stop(): void {
    this.queue.waitsNoMore(this);
  }

  onTime(): number {
    return this.queue.timeIsOver(this);
  }

  onAbort(): void {
    this.queue.aborted(this);
  }

  /** How many callers are before it, about. */
  ahead(): number | undefined {
    return this.queue.aheadOf(this);
  }

  admit(passed?: Hold): void {
    this.waiting?.resolve(passed);
  }

  reject(error: Error): void {
    this.waiting?.reject(error);
  }
}
