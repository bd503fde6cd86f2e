import { StoreFailure } from '../../../core/seam/store-failure.js';
import type { ExtendReply } from '../../../core/seam/reply.js';
import { isPassing, isWrongType, replyError, unwrapped } from '../connection/redis-failure.js';
import { impossible, isNumberOrNone } from '../connection/strict-replies.js';

/** A foreign hold without an end announces nothing when it goes: look for it at this interval, in ms. */
const ENDLESS_RETRY_MS = 1_000;

/** When a hold in the way is over, of which the server said how much is left; -1: it has no end. */
export const retryInMs = (leftMs: number): number => (leftMs === -1 ? ENDLESS_RETRY_MS : Math.max(1, leftMs));

/** How many were told of a release; -1 when there was nothing to release. */
export const readRelease = (reply: unknown): number => {
  if (!isNumberOrNone(reply)) throw impossible(reply);
  return reply;
};

/** Where another type of value is, there is no hold any more; everything else says nothing about it. */
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

export const readForceUnlock = (reply: unknown): boolean => {
  if (reply !== 0 && reply !== 1) throw impossible(reply);
  return reply === 1;
};

/** Why a place in line could not be asked about, by the text of the error that Redis gave for it. */
export const refusedPlace = (message: string): StoreFailure => {
  const cause = replyError(message);
  const text = unwrapped(message);
  const keyOnly = isWrongType(cause) || text.startsWith('FENCE ');
  return new StoreFailure(`Redis refused it: ${text}`, 'not-executed', {
    cause,
    keyOnly,
    passing: isPassing(cause),
  });
};
