import type {
  Blocking,
  ExtendReply,
  Holder,
  KeyState,
  QueueEntryReply,
  QueuePosition,
  Taken,
} from '../../../../core/seam/reply.js';
import type { Grant } from '../../../../core/seam/grant.js';
import { impossible, isNumberOrNone } from '../../connection/strict-replies.js';
import { FOREIGN_WORD } from '../exclusive/scripts.js';
import { byString } from '../foreign-holds.js';
import { readExtend, entryFailure, impossibleEntry, retryInMs } from '../shared-replies.js';

/** Reply of the scripts to an acquire. The store adds the queue entry. */
type ReadWriteReply = Grant | Taken | ({ readonly status: 'queued' } & QueuePosition);

const OTHER_KINDS = ['exclusive', 'fair'] as const;

const keptOut = (left: string | undefined, by: string | undefined): Blocking & Pick<Taken, 'retryInMs'> => {
  if (by === FOREIGN_WORD) return byString(Number(left));
  const heldAs = OTHER_KINDS.find((kind) => kind === by);
  return { retryInMs: retryInMs(Number(left)), ...(heldAs && { heldAs }) };
};

const queued = (reply: string): ({ readonly status: 'queued' } & QueuePosition) | undefined => {
  const [, before, left, by] = /^q (\d{1,15}) (-1|\d{1,15})(?: (\w+))?$/.exec(reply) ?? [];
  if (before === undefined) return undefined;
  return { status: 'queued', position: Number(before), ...keptOut(left, by) };
};

const taken = (reply: string): Taken | undefined => {
  const [, left, by] = /^t (-1|\d{1,15}) (\w+)$/.exec(reply) ?? [];
  return left === undefined ? undefined : { status: 'taken', ...keptOut(left, by) };
};

const readReply = (reply: unknown, granted: (reply: string) => Grant | undefined): ReadWriteReply => {
  if (isNumberOrNone(reply)) return { status: 'taken', retryInMs: retryInMs(reply) };
  const read = typeof reply === 'string' ? (queued(reply) ?? taken(reply) ?? granted(reply)) : undefined;
  if (!read) throw impossible(reply);
  return read;
};

export const readReadAcquire = (reply: unknown, leaseMs: number): ReadWriteReply =>
  readReply(reply, (text) => (text === 'granted' ? { status: 'granted', validForMs: leaseMs } : undefined));

export const readWriteAcquire = (reply: unknown, leaseMs: number, tokens: number): ReadWriteReply =>
  readReply(reply, (text) => {
    if (!/^\d{1,16}$/.test(text)) return undefined;
    const token = Number(text);
    if (tokens === 0) return { status: 'granted', validForMs: leaseMs };
    return token > 0 && Number.isSafeInteger(token)
      ? { status: 'granted', validForMs: leaseMs, token, tokens }
      : undefined;
  });

export const readReadWriteKeep = (reply: unknown, count: number): readonly QueueEntryReply[] => {
  if (!Array.isArray(reply) || reply.length !== count) throw impossible(reply);
  return reply.map((one: unknown): QueueEntryReply => {
    if (typeof one !== 'string') return impossibleEntry(one);
    if (one === 'gone') return { status: 'gone' };
    if (one === 'h') return { status: 'held' };
    if (!one.startsWith('error ')) return queued(one) ?? impossibleEntry(one);
    return { status: 'failed', cause: entryFailure(one.slice('error '.length)) };
  });
};

export const readDowngrade = (reply: unknown): ExtendReply => readExtend(reply, 1)[0]!;

export const readReadWriteInspect = (reply: unknown): KeyState | null => {
  if (reply === null) return null;
  const [mode, found, waiting] = Array.isArray(reply) ? (reply as unknown[]) : [];
  if (!Array.isArray(found) || found.length % 3 !== 0 || !Array.isArray(waiting)) throw impossible(reply);
  if (!waiting.every((owner) => typeof owner === 'string')) throw impossible(reply);
  const holders: Holder[] = [];
  for (let i = 0; i < found.length; i += 3) {
    const [owner, count, left] = found.slice(i, i + 3) as unknown[];
    if (typeof owner !== 'string' || !isNumberOrNone(count) || !isNumberOrNone(left)) throw impossible(reply);
    holders.push({ owner, count: Math.max(1, count), remainingMs: left === -1 ? Infinity : left });
  }
  if (mode === FOREIGN_WORD) return { kind: 'exclusive', heldAs: 'foreign', holders, waiting };
  return { kind: mode === 'write' ? 'write' : 'read', holders, waiting };
};
