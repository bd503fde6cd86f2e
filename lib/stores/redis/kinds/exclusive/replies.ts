import type { AcquireReply, KeyState } from '../../../../core/seam/reply.js';
import { impossible, isNumberOrNone } from '../../connection/strict-replies.js';
import { retryInMs } from '../shared-replies.js';

export const readAcquire = (reply: unknown, leaseMs: number, fenced: boolean): AcquireReply => {
  if (isNumberOrNone(reply)) {
    return { status: 'taken', retryInMs: retryInMs(reply) };
  }
  if (typeof reply !== 'string' || !/^\d{1,16}$/.test(reply)) throw impossible(reply);
  if (!fenced) return { status: 'granted', validForMs: leaseMs, token: undefined };
  const token = Number(reply);
  if (token === 0 || !Number.isSafeInteger(token)) throw impossible(reply);
  return { status: 'granted', validForMs: leaseMs, token };
};

/** How often the owner has entered. Foreign hashes have anything there; an owner in one has entered it once. */
const countOf = (text: string): number => {
  const count = /^\d+$/.test(text) ? Number(text) : 1;
  return Number.isSafeInteger(count) && count > 0 ? count : 1;
};

export const readInspect = (reply: unknown): KeyState | null => {
  if (reply === null) return null;
  const [owner, count, left] = Array.isArray(reply) ? (reply as unknown[]) : [];
  if (typeof owner !== 'string' || typeof count !== 'string' || !isNumberOrNone(left))
    throw impossible(reply);
  const remainingMs = left === -1 ? Infinity : left;
  return { kind: 'exclusive', holders: [{ owner, count: countOf(count), remainingMs }], waiting: [] };
};
