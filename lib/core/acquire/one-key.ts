import type { CoreContext } from '../context/core-context.js';
import { abortedError, storeError, takenError } from '../errors/error-messages.js';
import { isTaken } from '../errors/lock.errors.js';
import { kindOf } from '../kinds/kinds.js';
import type { Hold } from '../lease/hold.js';
import type { Releasing } from '../lease/releasing.js';
import { renewalOf } from '../lease/renewal.js';
import type { LockCall } from '../settings/lock-call.js';
import { waitFor } from '../util/wait-for.js';
import { contend, type ContentionHost } from './contend.js';
import { LimitLog } from './limit-log.js';
import type { LocalQueue } from './local-queue.js';
import type { Waiter } from './waiter.js';
import { deadlineOf, type Wait } from '../wait/wait.js';
import { mayShare, type HoldTerms, type WantedHold } from './wanted-hold.js';

/**
 * Acquires one key for a caller: it joins a shared hold, contends in the store, or waits in the local queue behind the
 * contender of its process.
 */
export class OneKey implements HoldTerms {
  readonly whenLost: (hold: Hold) => void;
  readonly limitChanged: LimitLog['changed'];

  constructor(
    private readonly core: ContentionHost & Pick<CoreContext, 'logger' | 'outages' | 'queues'>,
    private readonly releasing: Releasing,
  ) {
    this.whenLost = releasing.whenLost;
    this.limitChanged = new LimitLog(core.logger, core.shown).changed;
  }

  /** Acquires the key of a wait. An error that needs no request to the store is thrown at once. */
  take(
    wait: Wait,
    finalKey: string,
    call: LockCall,
    leaseMs: number | undefined,
    storeReplied = false,
  ): Promise<Hold> {
    const { core } = this;
    const over = core.reasonToStop(wait);
    if (over) throw over;
    core.requests.checkCall(call);
    const queue = core.queues.forCaller(call.kind, finalKey, wait.key);
    const watchdogMs = leaseMs === undefined ? call.watchdogMs : undefined;
    const wanted: WantedHold = { finalKey, call, leaseMs, watchdogMs };
    const shares = mayShare(call);
    const shared = shares ? queue.shared.join(call.watchdogMs, core.runtime.now()) : undefined;
    if (shared) return Promise.resolve(shared);
    if (queue.enter()) return this.request(contend(core, queue, wait, wanted, this, true), wait);
    if (queue.held && core.outages.storeFails && !storeReplied) {
      const again = (): Promise<Hold> => this.take(wait, finalKey, call, leaseMs, true);
      return this.request(this.ifStoreReplies(queue.held, wait).then(again), wait);
    }
    // A caller that can join the contender's shared hold sends no request.
    const concurrent = shares ? undefined : queue.beginConcurrent(wait, call.permits);
    return concurrent
      ? this.request(this.contendConcurrently(queue, concurrent, wait, wanted), wait)
      : this.waitInQueue(queue, wait, wanted);
  }

  /**
   * While the store fails, a caller does not queue behind a holder of its process for long. Its own request finds out whether
   * the store fails still: to extend the hold by nothing. If its wait is over by then, the key was taken, and no second request
   * follows.
   */
  private async ifStoreReplies(hold: Hold, wait: Wait): Promise<void> {
    const { requests, runtime, shown } = this.core;
    hold.inStore.holdersRequest('sent', runtime.now(), 1);
    const over = (): void => hold.inStore.holdersRequest('over', runtime.now(), 1);
    try {
      const [reply] = await requests.extendMany([renewalOf(hold, 1)]).finally(over);
      if (reply?.status === 'failed') throw reply.cause;
      if (reply?.status === 'lost') hold.lose(reply.intruder ? 'entered' : 'refused');
      requests.replied();
    } catch (failure) {
      requests.failed(failure);
      throw storeError(shown(wait.key), failure, 'acquiring', runtime.now() - wait.startedAt, 'not-executed');
    }
    const now = runtime.now();
    if (now >= deadlineOf(wait)) throw takenError(shown(wait.key), now - wait.startedAt, wait.waitMs);
  }

  private request(contention: Promise<Hold>, wait: Wait): Promise<Hold> {
    return wait.signal ? this.unlessAborted(contention, wait, wait.signal) : contention;
  }

  private waitInQueue(queue: LocalQueue, wait: Wait, wanted: WantedHold, concurrent?: Waiter): Promise<Hold> {
    const { core } = this;
    const { call, watchdogMs } = wanted;
    const inherits = call.holdAtLeastMs === 0 && (!kindOf(call.kind).shared || mayShare(call));
    return queue
      .untilContender(wait, inherits ? watchdogMs : undefined, concurrent)
      .then(
        (passed) =>
          (passed && this.inherit(passed, wait)) ??
          this.request(contend(core, queue, wait, wanted, this, true), wait),
      );
  }

  /** A caller that is refused beside the contender lines up, in the place that it has, if it has time left. */
  private async contendConcurrently(
    queue: LocalQueue,
    concurrent: Waiter,
    wait: Wait,
    wanted: WantedHold,
  ): Promise<Hold> {
    const { core } = this;
    try {
      const hold = await contend(core, queue, wait, wanted, this, false);
      queue.endConcurrent(concurrent);
      return hold;
    } catch (error) {
      if (isTaken(error) && core.runtime.now() < deadlineOf(wait) && !core.reasonToStop(wait)) {
        return this.waitInQueue(queue, wait, wanted, concurrent);
      }
      queue.endConcurrent(concurrent);
      throw error;
    }
  }

  /** Takes a hold that was passed on; undefined when it was lost on its way. Throws when it comes too late for its caller. */
  private inherit(hold: Hold, wait: Wait): Hold | undefined {
    const { core } = this;
    core.keeper.checkExpiry(hold);
    const over = hold.state === 'held' ? core.reasonToStop(wait) : undefined;
    if (hold.state === 'held' && !over) {
      // From here on it has a holder. When its hold ends, the next caller becomes the contender.
      hold.heldWith(this.whenLost);
      return hold;
    }
    if (this.releasing.releaseUnused(hold)) core.keeper.remove(hold);
    if (over) throw over;
    return undefined;
  }

  /** Rejects an aborted caller at once; a late grant is released. */
  private unlessAborted(contention: Promise<Hold>, wait: Wait, signal: AbortSignal): Promise<Hold> {
    const { core } = this;
    return waitFor<Hold>(core.runtime, {
      ms: Infinity,
      signal,
      listen: (waiting) =>
        void contention.then(
          (hold) => waiting.resolve(hold),
          (error: Error) => waiting.reject(error),
        ),
      onTime: () => undefined,
      onAbort: (waiting) => {
        // Only a shutdown waits for it still.
        core.undo.track(
          contention.then(
            (hold) => this.releasing.releaseUnused(hold),
            () => undefined,
          ),
        );
        waiting.reject(abortedError(core.shown(wait.key), signal, core.runtime.now() - wait.startedAt));
      },
    });
  }
}
