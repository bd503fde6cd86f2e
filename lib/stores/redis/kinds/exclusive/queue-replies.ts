import type { Grant } from '../../../../core/seam/grant.js';
import type { QueueEntryReply, ReleaseReply, QueuePosition, Taken } from '../../../../core/seam/reply.js';
import { impossible } from '../../connection/strict-replies.js';
import { entryFailure, impossibleEntry } from '../shared-replies.js';
import {
  INTRUDER,
  INTRUDER_WORD,
  FOREIGN_LOOK_MS,
  blocker,
  NEXT_FOREIGN_LOOK_MS,
  readAcquire,
} from './replies.js';

const QUEUED = /^q \d{1,16} (\d{1,9}) (-?\d{1,19})(?: (\w+))?$/;
const GRANTED = /^(\d{1,16}) (\d{1,16}) (\d{1,9})$/;
const KEPT = /^q (\d{1,9}) (-?\d{1,19})(?: (\w+))?$/;

/** Only the first entry retries before the end of the blocking hold. */
const queuePosition = ([, position, left, by]: RegExpExecArray, lookInMs: number): QueuePosition => ({
  position: Number(position),
  ...blocker(Number(left), by, position === '0' ? lookInMs : Infinity),
});

/** Reply to an acquire. The store adds the queue entry to a queued claim. */
export type QueueAcquire = Grant | Taken | ({ readonly status: 'queued' } & QueuePosition);

export const readQueueAcquire = (reply: unknown, leaseMs: number, tokens: number): QueueAcquire => {
  // Most locks are free, and their answers have no parts.
  if (typeof reply !== 'string' || !reply.includes(' ')) return readAcquire(reply, leaseMs, tokens);
  const queued = QUEUED.exec(reply);
  if (queued) return { status: 'queued', ...queuePosition(queued, FOREIGN_LOOK_MS) };
  const granted = GRANTED.exec(reply);
  if (!granted) return readAcquire(reply, leaseMs, tokens);
  const [, token, reserved, waiting] = granted;
  const grant = readAcquire(token, leaseMs, tokens && Number(reserved)) as Grant;
  return { ...grant, waiting: Number(waiting) };
};

const readEntry = (reply: unknown, wasKept: boolean | undefined): QueueEntryReply => {
  if (typeof reply !== 'string') return impossibleEntry(reply);
  const kept = KEPT.exec(reply);
  if (kept) {
    const lookInMs = wasKept ? NEXT_FOREIGN_LOOK_MS : FOREIGN_LOOK_MS;
    return { status: 'queued', ...queuePosition(kept, lookInMs) };
  }
  if (/^h -?\d+$/.test(reply)) return { status: 'held' };
  if (reply === 'gone') return { status: 'gone' };
  if (reply.startsWith('error ')) return { status: 'failed', cause: entryFailure(reply.slice(6)) };
  return impossibleEntry(reply);
};

/** Reads the replies for queue entries. `wereKept` tells for each entry whether it was refreshed before. */
export const readQueueKeep = (reply: unknown, wereKept: readonly boolean[]): QueueEntryReply[] => {
  if (!Array.isArray(reply) || reply.length !== wereKept.length) throw impossible(reply);
  return reply.map((one, i) => readEntry(one, wereKept[i]));
};

/** Reads the reply to a release: 0 when it was held, 1 when it was queued, -1 when neither; or 'entered'. */
export const readQueueRelease = (reply: unknown): ReleaseReply => {
  if (reply === INTRUDER_WORD) return INTRUDER;
  if (reply !== 0 && reply !== 1 && reply !== -1) throw impossible(reply);
  return { wasHeld: reply === 0, othersWaiting: false };
};

export const readQueueInspect = (reply: unknown): readonly string[] => {
  if (!Array.isArray(reply) || !reply.every((owner) => typeof owner === 'string')) throw impossible(reply);
  return reply;
};
