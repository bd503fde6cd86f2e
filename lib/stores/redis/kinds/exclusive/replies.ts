import type { Grant } from '../../../../core/seam/grant.js';
import type {
  AcquireReply,
  Blocking,
  ExtendReply,
  Holder,
  KeyState,
  ReleaseReply,
  Taken,
  QueueEntryReply,
  QueuePosition,
} from '../../../../core/seam/reply.js';
import { impossible, isNumberOrNone } from '../../connection/strict-replies.js';
import { byString } from '../foreign-holds.js';
import { readExtend, readRelease, retryInMs, entryFailure, impossibleEntry } from '../shared-replies.js';
import { FOREIGN_WORD } from './scripts.js';

/**
 * Pause before another look at a hold that is not a lock of this library, in ms. Redisson announces the end of some of
 * them on channels of their own, or not at all, and such a hold may end sooner than its first remaining time.
 */
export const FOREIGN_LOOK_MS = 75;
/** The same pause after the first look, in ms. Such a hold may stay long, and each look costs a request. */
export const NEXT_FOREIGN_LOOK_MS = 120;

const OTHER_KINDS = ['read', 'write', 'fair'] as const;

/** What the scripts call a fair lock of this library. Its end is announced here as that of an exclusive one. */
const OWN_FAIR = 'own_fair';

const kindCalled = (by: string): (typeof OTHER_KINDS)[number] | undefined =>
  by === OWN_FAIR ? 'fair' : OTHER_KINDS.find((kind) => kind === by);

/** Returns the reply about a blocking hold. `lookInMs` is the pause before the next look at a foreign one. */
export const blocker = (
  leftMs: number,
  by: string | undefined,
  lookInMs: number,
): Blocking & Pick<Taken, 'retryInMs'> => {
  if (by === FOREIGN_WORD) return byString(leftMs);
  const endsInMs = retryInMs(leftMs);
  if (by === undefined) return { retryInMs: endsInMs };
  const heldAs = kindCalled(by);
  return {
    retryInMs: by === OWN_FAIR ? endsInMs : Math.min(endsInMs, lookInMs),
    ...(heldAs && { heldAs }),
  };
};

const TAKEN = /^t (-?\d{1,19}) (\w+)$/;

/** @param tokens how many were asked for */
export const readAcquire = (reply: unknown, leaseMs: number, tokens: number): AcquireReply => {
  if (isNumberOrNone(reply)) {
    return { status: 'taken', retryInMs: retryInMs(reply) };
  }
  if (typeof reply !== 'string') throw impossible(reply);
  if (!/^\d{1,16}$/.test(reply)) {
    const taken = TAKEN.exec(reply);
    if (!taken) throw impossible(reply);
    return { status: 'taken', ...blocker(Number(taken[1]), taken[2], FOREIGN_LOOK_MS) };
  }
  if (tokens === 0) return { status: 'granted', validForMs: leaseMs };
  const token = Number(reply);
  if (token === 0 || !Number.isSafeInteger(token)) throw impossible(reply);
  return { status: 'granted', validForMs: leaseMs, token, tokens };
};

/** Reply of the scripts when another client's lock of another kind was in the hold: an intruder. */
export const INTRUDER_WORD = 'entered';

/** The same as a reply to a release. */
export const INTRUDER: ReleaseReply = { wasHeld: false, intruder: true, othersWaiting: false };

/** Reads the number of notified subscribers of a release, -1 when there was nothing to release, or `INTRUDER`. */
export const readExclusiveRelease = (reply: unknown): number | typeof INTRUDER =>
  reply === INTRUDER_WORD ? INTRUDER : readRelease(reply);

export const readExclusiveExtend = (reply: unknown, count: number): ExtendReply[] => {
  if (!Array.isArray(reply)) throw impossible(reply);
  const intruder = reply.map((one: unknown) => one === INTRUDER_WORD);
  const others = readExtend(
    reply.map((one: unknown) => (one === INTRUDER_WORD ? -1 : one)),
    count,
  );
  return others.map((one, i) => (intruder[i] ? { status: 'lost', intruder: true } : one));
};

/** How often the owner has entered. Foreign hashes have anything there; an owner in one has entered it once. */
const countOf = (text: string): number => {
  const count = /^\d+$/.test(text) ? Number(text) : 1;
  return Number.isSafeInteger(count) && count > 0 ? count : 1;
};

export const readInspect = (reply: unknown): KeyState | null => {
  if (reply === null) return null;
  const [left, by, ...fields] = Array.isArray(reply) ? (reply as unknown[]) : [];
  if (!isNumberOrNone(left) || typeof by !== 'string' || fields.length % 2 !== 0) throw impossible(reply);
  const remainingMs = left === -1 ? Infinity : left;
  const holders: Holder[] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const [owner, count] = fields.slice(i, i + 2);
    if (typeof owner !== 'string' || typeof count !== 'string') throw impossible(reply);
    holders.push({ owner, count: countOf(count), remainingMs });
  }
  // A hash with a mode only, or a string: it blocks, and names no holder.
  if (holders.length === 0) holders.push({ owner: '', count: 1, remainingMs });
  const heldAs = by === FOREIGN_WORD && ({ heldAs: 'foreign' } as const);
  return { kind: kindCalled(by) ?? 'exclusive', ...heldAs, holders, waiting: [] };
};

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
