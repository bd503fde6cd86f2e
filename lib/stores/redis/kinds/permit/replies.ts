import type { AcquireReply, Holder, KeyState, PermitState } from '../../../../core/seam/reply.js';
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

const readState = (reply: unknown): PermitState => {
  const [permits, free, ...rest] = Array.isArray(reply) ? (reply as unknown[]) : [];
  if (!isNumberOrNone(permits) || !isNumberOrNone(free) || rest.length % 2 !== 0) throw impossible(reply);
  const holders: Holder[] = [];
  for (let i = 0; i < rest.length; i += 2) {
    const [owner, left] = rest.slice(i, i + 2);
    if (typeof owner !== 'string' || !isNumberOrNone(left)) throw impossible(reply);
    holders.push({ owner, count: 1, remainingMs: left === -1 ? Infinity : left });
  }
  return { permits, free, holders };
};

export const readPermitInspect = (reply: unknown): KeyState | null => {
  const { holders } = readState(reply);
  return holders.length === 0 ? null : { kind: 'permit', holders, waiting: [] };
};

export const readPermits = (reply: unknown): PermitState | null => {
  const state = readState(reply);
  return state.permits === -1 ? null : state;
};
