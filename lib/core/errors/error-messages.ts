import {
  LockAbortedError,
  LockKeyError,
  LockLostError,
  LockNotAcquiredError,
  LockStoreError,
  type LossReason,
} from './lock.errors.js';
import { kindOf, type LockKind } from '../kinds/kinds.js';
import type { Claim } from '../seam/claim.js';
import type { Blocking, HeldAs } from '../seam/reply.js';
import { StoreFailure, textWithCause } from '../seam/store-failure.js';
import type { ShownKey } from '../util/shown-key.js';

/**
 * Errors of the core, in one place. Each says what happened, to which key, after how long, and what to do. Its key is the
 * one that `CoreContext.shown` returns.
 */

const ms = (duration: number): string => `${Math.round(duration)} ms`;

/** Returns the queue position of a waiter as text; empty where it is unknown. */
const behindText = (ahead: number | undefined): string => {
  if (ahead === undefined) return '';
  return ahead === 0 ? ', first of those who wait' : `, behind about ${ahead} others`;
};

/** Returns the kind of the blocking lock as text, where it is another kind. */
const byWhat = (heldAs: HeldAs | undefined): string => {
  if (heldAs === undefined) return '';
  if (heldAs === 'foreign') return ' by a lock of another library, a string';
  return ` by ${heldAs === 'exclusive' ? 'an' : 'a'} ${heldAs} lock, which is another kind`;
};

/** Returns what to do about a foreign lock that does not end; empty for other locks. */
const ifEndless = ({ endless }: Blocking): string =>
  endless === true
    ? ' The string has no expiry, so it stays until a program deletes it. If no program holds that lock, delete the string ' +
      'by hand; forceUnlock does not.'
    : '';

/**
 * @param waitersAhead see {@link LockNotAcquiredError}
 * @param blocking what the store says about the blocking hold; see {@link LockNotAcquiredError}
 */
export const takenError = (
  key: ShownKey,
  waitedMs: number,
  waitMs: number,
  waitersAhead?: number,
  blocking: Blocking = {},
): LockNotAcquiredError => {
  const { heldAs } = blocking;
  return new LockNotAcquiredError(
    'LOCK_TAKEN',
    (waitMs === 0
      ? `"${key}" is taken${byWhat(heldAs)}, and waitMs is 0. Pass a waitMs to wait for it, or treat this as "already running" (with oncePerMs: or as done in this window).`
      : `"${key}" was still taken after ${ms(waitedMs)} (waitMs: ${waitMs})${heldAs ? `,${byWhat(heldAs)}` : ''}${behindText(waitersAhead)}. ` +
        `Raise waitMs, shorten the work inside the lock, or lock a narrower key.`) + ifEndless(blocking),
    { key, waitersAhead, heldAs },
  );
};

export const queueFullError = (key: ShownKey, maxWaiters: number): LockNotAcquiredError =>
  new LockNotAcquiredError(
    'LOCK_QUEUE_FULL',
    `"${key}" is taken, and ${maxWaiters} callers of this process wait for it already (maxWaiters). ` +
      `Shed the load upstream, or raise maxWaiters.`,
    { key },
  );

export const notReentrantError = (key: ShownKey): LockNotAcquiredError =>
  new LockNotAcquiredError(
    'LOCK_NOT_REENTRANT',
    `"${key}" is held by the outer lease of this call, and a call with oncePerMs does not nest: its window belongs to the ` +
      `whole lock. Put oncePerMs on the outer call, or leave it out.`,
    { key },
  );

/** @param around label of the section around, and how it holds the key. @param kind what the call asks for */
export const endlessForItselfError = (
  key: ShownKey,
  { label, heldAs }: { readonly label: string; readonly heldAs: LockKind },
  kind: LockKind,
): LockNotAcquiredError =>
  new LockNotAcquiredError(
    'LOCK_NOT_REENTRANT',
    `A section of "${label}" around this call has a ${kindOf(heldAs).noun} on "${key}", and waitMs is Infinity: a ` +
      'part of that section would wait for itself without end. ' +
      (kindOf(kind).reentrantInto.length > 0
        ? 'Nest it with lease.call or inside: lease, or set a waitMs. '
        : 'A permit does not nest: take it once in the outer call, give it another key, or set a waitMs. ') +
      'If it is a task of a queue that only runs in this context, bind it with AsyncResource.bind where it is added, or ' +
      'wrap it in detached(fn).',
    { key },
  );

/** Returns what a call has to know whose context holds the key that it asks for. @param kind what it asks for */
export const heldAroundText = (label: string, kind: LockKind): string =>
  `a section of "${label}" around this call holds the key. If the call is a part of it, ` +
  (kindOf(kind).reentrantInto.length > 0
    ? 'use lease.call or inside: lease, or call an unlocked method. '
    : 'take the permit once, in the outer call. ') +
  'If it is a task of a queue, it waits in its turn: do not await that queue while you hold this key.';

/** @param label label of the lease of this process that holds the key */
export const heldHereText = (label: string): string =>
  ` The holder is a lease of "${label}" in this process. If it is the caller's own lease, release it first, or nest the ` +
  'call with lease.call or inside: lease.';

/** @param around kind of lock that the outer lease holds on the key */
export const selfDeadlockError = (key: ShownKey, kind: LockKind, around: LockKind): LockNotAcquiredError =>
  new LockNotAcquiredError(
    'LOCK_NOT_REENTRANT',
    `A ${kindOf(kind).noun} on "${key}" was asked for inside a ${kindOf(around).noun} on it, and would wait for that: ` +
      (around === 'read' && kind === 'write'
        ? `two readers that both want to write would wait for each other for ever. Take the write lock further out; ` +
          `lease.downgrade() makes a read lock of it when the writing is done.`
        : `one name is one kind of lock. Give both calls the same mode, or one of them another key.`),
    { key },
  );

/** Returns what to know about a request with an unknown outcome; empty for requests that change nothing. */
const whenUnknown = (doing: string): string => {
  switch (doing) {
    case 'verifying':
    case 'inspecting':
    case 'pinging it':
      return '';
    case 'acquiring':
    case 'waiting for':
      return 'It may have been done; the library undoes what nobody owns. ';
    default:
      return 'It may have been done. ';
  }
};

/** Returns true when the store works but rejects this key or this claim: it would reject the same request again. */
const isRefusal = (failure: unknown): failure is StoreFailure =>
  failure instanceof StoreFailure && failure.keyOnly && !failure.transient;

/** Returns true when too few requests were sent, because this process asks for more than the store serves. */
const isOverload = (failure: unknown): failure is StoreFailure =>
  failure instanceof StoreFailure && failure.overloaded;

const whatToDo = (failure: unknown): string => {
  if (isOverload(failure))
    return ' Ask for fewer locks at once, or try again later. More connections help a database.';
  if (!isRefusal(failure)) return ' Check the store, then try again.';
  return failure.claimOnly ? '' : ' Use another key, or another keyPrefix.';
};

/**
 * Requests that precede the caller's work, or only read. After the others the work has begun, or a hold needs a
 * release.
 */
const BEFORE_WORK: ReadonlySet<string> = new Set([
  'acquiring',
  'waiting for',
  'setting the lease of',
  'inspecting',
  'pinging it',
  'acquiring permits of',
  'counting the permits of',
  'reading the count of',
]);

/** Returns the error for a key that the store rejects by its name. The store's text does not repeat the key. */
export const storeKeyError = (key: ShownKey, { message, cause }: LockKeyError): LockKeyError =>
  new LockKeyError(`The key "${key}" cannot be used: ${message}`, {
    key,
    ...(cause !== undefined && { cause }),
  });

/** Returns how long the store had failed when the wait timed out, as text. */
const failedFor = (failedForMs: number | undefined): string =>
  failedForMs === undefined ? '' : `The store has failed for ${ms(failedForMs)}. `;

/** Some nodes of a quorum may have had a request. */
const unsent = ({ outcome }: StoreFailure): string =>
  outcome === 'unknown' ? 'Too few requests were sent' : 'No request was sent';

/** Returns the first sentence of an error about the store. */
const storeFailed = (doing: string, key: ShownKey | undefined, failure: unknown, afterMs: number): string =>
  `${isOverload(failure) ? unsent(failure) : 'The lock store failed'} while ${doing}` +
  `${key === undefined ? '' : ` "${key}"`}, after ${ms(afterMs)}: ${textWithCause(failure)}.`;

/** Returns what an error about the store has besides its text. */
const detailsOf = (key: ShownKey | undefined, failure: unknown, doing: string) => ({
  key,
  cause: failure instanceof StoreFailure && failure.cause !== undefined ? failure.cause : failure,
  retryable: BEFORE_WORK.has(doing) && !isRefusal(failure),
  ...(isOverload(failure) && { reason: 'overloaded' as const }),
});

/** @param failedForMs for a caller that waited through an outage: how long the outage has lasted */
export const storeError = (
  key: ShownKey | undefined,
  failure: unknown,
  doing: string,
  afterMs: number,
  outcome = failure instanceof StoreFailure ? failure.outcome : 'unknown',
  failedForMs?: number,
): LockStoreError =>
  new LockStoreError(
    `${storeFailed(doing, key, failure, afterMs)} ` +
      failedFor(failedForMs) +
      (outcome === 'unknown' ? whenUnknown(doing) : '') +
      'This says nothing about whether the lock is taken.' +
      whatToDo(failure),
    outcome,
    detailsOf(key, failure, doing),
  );

/** @param ifUnknown what to know when the outcome is unknown */
export const objectStoreError = (
  key: ShownKey,
  failure: unknown,
  { doing, ifUnknown }: { readonly doing: string; readonly ifUnknown?: string },
  afterMs: number,
  outcome = failure instanceof StoreFailure ? failure.outcome : 'unknown',
  failedForMs?: number,
): LockStoreError =>
  new LockStoreError(
    storeFailed(doing, key, failure, afterMs) +
      ` ${failedFor(failedForMs)}`.trimEnd() +
      (outcome === 'unknown' && ifUnknown !== undefined ? ` It may have been done: ${ifUnknown}` : '') +
      whatToDo(failure),
    outcome,
    detailsOf(key, failure, doing),
  );

export const noPermitsError = (
  key: ShownKey,
  permits: number,
  waitedMs: number,
  waitMs: number,
): LockNotAcquiredError => {
  const wanted = permits === 1 ? 'a permit' : `${permits} permits`;
  return new LockNotAcquiredError(
    'LOCK_TAKEN',
    waitMs === 0
      ? `"${key}" does not have ${wanted} free, and waitMs is 0. Pass a waitMs to wait.`
      : `"${key}" did not have ${wanted} free within ${ms(waitedMs)} (waitMs: ${waitMs}). ` +
          'Raise waitMs, give permits back sooner, or make them more.',
    { key },
  );
};

export const semaphoreFullError = (key: ShownKey, maxWaiters: number): LockNotAcquiredError =>
  new LockNotAcquiredError(
    'LOCK_QUEUE_FULL',
    `"${key}" has not enough permits free, and ${maxWaiters} callers of this process wait for some already (maxWaiters). ` +
      `Shed the load upstream, or raise maxWaiters.`,
    { key },
  );

export const latchClosedError = (key: ShownKey, waitedMs: number, waitMs: number): LockNotAcquiredError =>
  new LockNotAcquiredError(
    'LOCK_TAKEN',
    waitMs === 0
      ? `The latch "${key}" is not counted down yet, and waitMs is 0. Pass a waitMs to wait.`
      : `The latch "${key}" was not counted down within ${ms(waitedMs)} (waitMs: ${waitMs}). ` +
          'Raise waitMs; getCount() tells how much is left, and delete() opens it when nobody will count down any more.',
    { key },
  );

export const abortedError = (key: ShownKey, signal: AbortSignal, waitedMs: number): LockAbortedError =>
  new LockAbortedError(
    'LOCK_ABORTED',
    `The wait for "${key}" was given up after ${ms(waitedMs)}: the caller's signal was aborted.`,
    { key, cause: signal.reason },
  );

export const shutdownError = (key: ShownKey): LockAbortedError =>
  new LockAbortedError(
    'LOCK_SHUTDOWN',
    `"${key}" was not taken: this instance is shutting down. Try another one.`,
    {
      key,
    },
  );

/** Reason of a leadership's signal when its lock was not lost. */
export const leadershipOverError = (
  key: ShownKey,
  reason: 'resigned' | 'stopped' | 'rejected' | 'shutdown',
  cause: unknown,
): LockAbortedError =>
  new LockAbortedError(
    reason === 'shutdown' ? 'LOCK_SHUTDOWN' : 'LOCK_ABORTED',
    `This process leads "${key}" no longer: ${LEADERSHIP_OVER[reason]}. The lock is released when the work has ended.`,
    { key, retryable: false, ...(reason === 'rejected' && { cause }) },
  );

const LEADERSHIP_OVER = {
  resigned: 'it resigned',
  stopped: 'the candidate was stopped',
  rejected: 'the work failed',
  shutdown: 'the app is stopping',
} as const;

/** Returns the error for a request after the store was closed. */
export const closedError = (key: ShownKey | undefined, doing: string): LockAbortedError =>
  new LockAbortedError(
    'LOCK_SHUTDOWN',
    `This instance has shut down, so ${doing}${key === undefined ? '' : ` "${key}"`} was not done. Try another one.`,
    { ...(key !== undefined && { key }), retryable: BEFORE_WORK.has(doing) },
  );

const LOSS: Record<LossReason | 'outer-release', string> = {
  expired:
    'its lease ran out before it could be renewed (the store was out of reach, the process stood still, or a fixed leaseMs was too short)',
  refused:
    'the store no longer had it (it expired, was unlocked by force or deleted, or the store lost its data)',
  entered:
    'a lock of another kind of another client (a read-write lock of Redisson) was taken on the same name beside it',
  overdue:
    'its caller held it for maxHoldMs. It is not renewed any more, and ends with its lease or with the work, whichever comes first',
  'force-unlocked': 'somebody called forceUnlock',
  'outer-release': 'the lease around it was released by hand while it was inside',
  shutdown: 'the app is stopping and the work did not end within shutdownGraceMs',
};

/** @param claim the lost claim: its kind, and whether it has a fencing token */
export const lostError = (
  key: ShownKey,
  { kind, tokens }: Claim,
  reason: LossReason | 'outer-release',
  heldMs: number,
): LockLostError =>
  new LockLostError(
    'LOCK_LOST',
    `The ${kindOf(kind).noun} on "${key}" was lost after ${ms(heldMs)}: ${LOSS[reason]}. Somebody else may ` +
      `work on the same thing: stop${tokens > 0 ? ', and let the fencing token decide what is written' : ''}.`,
    { key, reason },
  );

/** @param laterToken greater token that the database has; undefined when it is unknown */
export const fencedError = (
  key: ShownKey,
  { kind }: Claim,
  token: number,
  laterToken: number | undefined,
): LockLostError =>
  new LockLostError(
    'LOCK_LOST',
    `The ${kindOf(kind).noun} on "${key}" was lost: a later holder with a greater token` +
      `${laterToken === undefined ? '' : ` (${laterToken})`} was in the database before this one (${token}). ` +
      'Let this error roll the transaction back. Then acquire the lock again and repeat the work.',
    { key, reason: 'fenced' },
  );
