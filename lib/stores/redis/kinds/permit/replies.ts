import type { AcquireReply, Holder, KeyState } from '../../../../core/seam/reply.js';
import { impossible, isNumberOrNone } from '../../connection/strict-replies.js';
import { retryInMs } from '../shared-replies.js';

export const readPermitAcquire = (reply: unknown, leaseMs: number): AcquireReply => {
  const [granted, leftMs, before, ...more] = Array.isArray(reply) ? (reply as unknown[]) : [];
  if ((granted !== 0 && granted !== 1) || !isNumberOrNone(leftMs) || more.length > 0) throw impossible(reply);
  if (!Number.isSafeInteger(before)) throw impossible(reply);
  const limit = before === -1 ? {} : { limitBefore: before as number };
  if (granted === 1) return { status: 'granted', validForMs: leaseMs, ...limit };
  return { status: 'taken', retryInMs: retryInMs(leftMs), ...limit };
};

export const readPermitInspect = (reply: unknown): KeyState | null => {
  if (!Array.isArray(reply) || reply.length % 2 !== 0) throw impossible(reply);
  const holders: Holder[] = [];
  for (let i = 0; i < reply.length; i += 2) {
    const [owner, left] = reply.slice(i, i + 2) as unknown[];
    if (typeof owner !== 'string' || !isNumberOrNone(left)) throw impossible(reply);
    holders.push({ owner, count: 1, remainingMs: left === -1 ? Infinity : left });
  }
  return holders.length === 0 ? null : { kind: 'permit', holders, waiting: [] };
};
