import type { FairClaim } from '../../../../core/seam/claim.js';
import type { QueueEntry } from '../../../../core/seam/queue-entry.js';
import type { AcquireReply, QueueEntryReply, Taken } from '../../../../core/seam/reply.js';
import { impossible, isNumberOrNone } from '../../connection/strict-replies.js';
import { readAcquire } from '../exclusive/replies.js';
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
    return { status: 'queued', entry, ...positionOf(first, second, reply), ...anotherKind(more[0], reply) };
  }
  if (status === 3 && first === undefined && !entry) return AGAIN;
  const isGrant = status === 1 && typeof first === 'string' && second === undefined;
  const isRefusal = status === 0 && isNumberOrNone(first);
  if ((!isGrant && !isRefusal) || more.length > 0) throw impossible(reply);
  return { ...readAcquire(first, leaseMs, tokens), ...anotherKind(second, reply) };
};

const OTHER_KINDS = ['exclusive', 'read', 'write'] as const;

/** Reads which other kind of lock has the key, when the script names it. */
const anotherKind = (by: unknown, reply: unknown): Pick<Taken, 'heldAs'> => {
  if (by === undefined) return {};
  const heldAs = OTHER_KINDS.find((kind) => kind === by);
  if (!heldAs) throw impossible(reply);
  return { heldAs };
};

const positionOf = (position: unknown, retryInMs: unknown, reply: unknown) => {
  const isWhole = (value: unknown): value is number => isNumberOrNone(value) && value >= 0;
  if (!isWhole(position) || !isWhole(retryInMs)) throw impossible(reply);
  return { position, retryInMs };
};

export const readFairEntries = (reply: unknown, count: number): QueueEntryReply[] => {
  if (!Array.isArray(reply) || reply.length !== count) throw impossible(reply);
  return reply.map((one: unknown): QueueEntryReply => {
    if (one === 1) return { status: 'held' };
    if (one === 0) return { status: 'gone' };
    if (typeof one === 'string') return { status: 'failed', cause: entryFailure(one) };
    if (!Array.isArray(one) || one.length !== 2) return impossibleEntry(one);
    return { status: 'queued', ...positionOf(one[0], one[1], one) };
  });
};

export const readWaiting = (reply: unknown): readonly string[] => {
  if (!Array.isArray(reply) || !reply.every((owner) => typeof owner === 'string')) throw impossible(reply);
  return reply;
};
