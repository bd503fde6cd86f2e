import type { FairClaim } from '../../../../core/seam/claim.js';
import type { QueueEntry } from '../../../../core/seam/queue-entry.js';
import type { AcquireReply, Blocking, QueueEntryReply } from '../../../../core/seam/reply.js';
import { impossible, isNumberOrNone } from '../../connection/strict-replies.js';
import { readAcquire } from '../exclusive/replies.js';
import { FOREIGN_WORD } from '../exclusive/scripts.js';
import { byString } from '../foreign-holds.js';
import { entryFailure, impossibleEntry } from '../shared-replies.js';

/** Nothing is decided yet: repeating the request clears more dead entries. */
interface Again {
  readonly status: 'again';
}

const AGAIN: Again = { status: 'again' };

export const readFairAcquire = (
  reply: unknown,
  { leaseMs, tokens }: FairClaim,
  entry: QueueEntry | undefined,
): AcquireReply | Again => {
  const [status, first, second, ...more] = Array.isArray(reply) ? (reply as unknown[]) : [];
  if (status === 2 && entry && more.length <= 1) {
    return { status: 'queued', entry, ...positionOf(first, second, more[0], reply) };
  }
  if (status === 3 && first === undefined && !entry) return AGAIN;
  const isGrant = status === 1 && typeof first === 'string' && second === undefined;
  const isRefusal = status === 0 && isNumberOrNone(first);
  if ((!isGrant && !isRefusal) || more.length > 0) throw impossible(reply);
  return { ...readAcquire(first, leaseMs, tokens), ...anotherKind(second, first, reply) };
};

const OTHER_KINDS = ['exclusive', 'read', 'write'] as const;

/** Reads which other kind of lock has the key, when the script names it. `left`: remaining ms of its hold. */
const anotherKind = (by: unknown, left: unknown, reply: unknown): Blocking => {
  if (by === undefined) return {};
  if (by === FOREIGN_WORD) return byString(Number(left));
  const heldAs = OTHER_KINDS.find((kind) => kind === by);
  if (!heldAs) throw impossible(reply);
  return { heldAs };
};

const positionOf = (position: unknown, retryInMs: unknown, by: unknown, reply: unknown) => {
  const isWhole = (value: unknown): value is number => isNumberOrNone(value) && value >= 0;
  const isTime = by === FOREIGN_WORD ? isNumberOrNone(retryInMs) : isWhole(retryInMs);
  if (!isWhole(position) || !isTime) throw impossible(reply);
  return { position, retryInMs: Number(retryInMs), ...anotherKind(by, retryInMs, reply) };
};

export const readFairEntries = (reply: unknown, count: number): QueueEntryReply[] => {
  if (!Array.isArray(reply) || reply.length !== count) throw impossible(reply);
  return reply.map((one: unknown): QueueEntryReply => {
    if (one === 1) return { status: 'held' };
    if (one === 0) return { status: 'gone' };
    if (typeof one === 'string') return { status: 'failed', cause: entryFailure(one) };
    const isEntry = Array.isArray(one) && (one.length === 2 || (one.length === 3 && one[2] === FOREIGN_WORD));
    if (!isEntry) return impossibleEntry(one);
    return { status: 'queued', ...positionOf(one[0], one[1], one[2], one) };
  });
};
