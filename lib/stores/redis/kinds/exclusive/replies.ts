import type { AcquireReply, ExtendReply, KeyState } from '../../../../core/seam/reply.js';
import { isWrongType, replyError, unwrapped } from '../../connection/redis-failure.js';
import { impossible, isTimeLeft } from '../../connection/strict-replies.js';

/** A foreign hold without an end announces nothing when it goes: look for it at this interval, in ms. */
const ENDLESS_RETRY_MS = 1_000;

export const readAcquire = (reply: unknown, leaseMs: number, fenced: boolean): AcquireReply => {
  if (isTimeLeft(reply)) {
    return { status: 'taken', retryInMs: reply === -1 ? ENDLESS_RETRY_MS : Math.max(1, reply) };
  }
  if (typeof reply !== 'string' || !/^\d{1,16}$/.test(reply)) throw impossible(reply);
  if (!fenced) return { status: 'granted', validForMs: leaseMs, token: undefined };
  const token = Number(reply);
  if (token === 0 || !Number.isSafeInteger(token)) throw impossible(reply);
  return { status: 'granted', validForMs: leaseMs, token };
};

/** How many were told of a release; -1 when there was nothing to release. */
export const readRelease = (reply: unknown): number => {
  if (!isTimeLeft(reply)) throw impossible(reply);
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
    if (!isTimeLeft(one)) return { status: 'failed', cause: impossible(one) };
    return one === -1 ? { status: 'lost' } : { status: 'held', validForMs: one };
  });
};

/** How often the owner has entered. Foreign hashes have anything there; whoever is in one has entered it once. */
const countOf = (text: string): number => {
  const count = /^\d+$/.test(text) ? Number(text) : 1;
  return Number.isSafeInteger(count) && count > 0 ? count : 1;
};

export const readInspect = (reply: unknown): KeyState | null => {
  if (reply === null) return null;
  const [owner, count, left] = Array.isArray(reply) ? (reply as unknown[]) : [];
  if (typeof owner !== 'string' || typeof count !== 'string' || !isTimeLeft(left)) throw impossible(reply);
  const remainingMs = left === -1 ? Infinity : left;
  return { kind: 'exclusive', holders: [{ owner, count: countOf(count), remainingMs }], waiting: [] };
};

export const readForceUnlock = (reply: unknown): boolean => {
  if (reply !== 0 && reply !== 1) throw impossible(reply);
  return reply === 1;
};
