import { StoreFailure } from '../../../core/seam/store-failure.js';
import type { ExtendReply, QueueEntryReply } from '../../../core/seam/reply.js';
import { isPassing, isWrongType, replyError, unwrapped } from '../connection/redis-failure.js';
import { impossible, isNumberOrNone } from '../connection/strict-replies.js';

/** Pause before retrying behind a foreign hold without an end, in ms: its removal is not announced. */
const ENDLESS_RETRY_MS = 1_000;

/** Returns when to retry behind a blocking hold, in ms, from its remaining time; -1: it has no end. */
export const retryInMs = (leftMs: number): number => (leftMs === -1 ? ENDLESS_RETRY_MS : Math.max(1, leftMs));

/** Reads the number of listeners that a release has notified; -1 when there was nothing to release. */
export const readRelease = (reply: unknown): number => {
  if (!isNumberOrNone(reply)) throw impossible(reply);
  return reply;
};

/** Returns the reply for an error. With a value of another type the hold is gone; other errors say nothing about it. */
const failedExtend = (error: Error): ExtendReply =>
  isWrongType(error)
    ? { status: 'lost' }
    : {
        status: 'failed',
        cause: new Error(`Redis refused it: ${unwrapped(error.message)}`, { cause: error }),
      };

export const readExtend = (reply: unknown, count: number): ExtendReply[] => {
  if (!Array.isArray(reply) || reply.length !== count) throw impossible(reply);
  return reply.map((one: unknown): ExtendReply => {
    if (typeof one === 'string') return failedExtend(replyError(one));
    if (!isNumberOrNone(one)) return { status: 'failed', cause: impossible(one) };
    return one === -1 ? { status: 'lost' } : { status: 'held', validForMs: one };
  });
};

export const readOwners = (reply: unknown): readonly string[] => {
  if (!Array.isArray(reply) || !reply.every((owner) => typeof owner === 'string')) throw impossible(reply);
  return reply;
};

/** Returns the reply for a queue entry that no script can have given. */
export const impossibleEntry = (reply: unknown): QueueEntryReply => {
  const cause = impossible(reply);
  return { status: 'failed', cause: new StoreFailure(cause.message, 'unknown', { cause }) };
};

/** Makes the failure of a queue entry that could not be refreshed, from the text of Redis's error. */
export const entryFailure = (message: string): StoreFailure => {
  const cause = replyError(message);
  const text = unwrapped(message);
  const keyOnly = isWrongType(cause) || text.startsWith('FENCE ');
  return new StoreFailure(`Redis refused it: ${text}`, 'not-executed', {
    cause,
    keyOnly,
    passing: isPassing(cause),
  });
};
