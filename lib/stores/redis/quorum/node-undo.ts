import { Undo } from '../../../core/lease/undo.js';
import type { Runtime } from '../../../core/util/runtime.js';
import type { StoreFailure } from '../../../core/seam/store-failure.js';
import { isOfNode } from './node-outage.js';
import type { NodeStore } from './node-store.js';

/** Time after a failed release in which the node gets no other one, in ms. */
const REST_MS = 50;

/**
 * Returns the undo of one node: it releases what the node has, or may have, without an owner that wants it. Such holds
 * belong to callers that got no majority, or to releases that the node did not reply to.
 *
 * There may be many, so a node that fails gets one release at a time. The others fail with it, or follow it.
 */
export const nodeUndo = (store: NodeStore, runtime: Runtime, isFailing: () => boolean): Undo => {
  /** Failure of the node at the last release; undefined once it has replied to one. */
  let failure: StoreFailure | undefined;
  let failedAt = -Infinity;
  /** Release that tries whether the node still fails. */
  let trial: Promise<unknown> | undefined;
  return new Undo(async (claim, how) => {
    // Also the error of a bug concerns that release alone.
    if (trial) await trial.catch(() => undefined);
    if (failure && runtime.now() < failedAt + REST_MS) throw failure;
    const sent = store.kinds[claim.kind]!.release(claim, how);
    if (failure || isFailing()) trial ??= sent;
    try {
      await sent;
      failure = undefined;
    } catch (error) {
      if (isOfNode(error)) [failure, failedAt] = [error, runtime.now()];
      throw error;
    } finally {
      if (trial === sent) trial = undefined;
    }
  }, runtime);
};
