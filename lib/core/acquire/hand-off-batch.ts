import type { Hold, HoldCaller } from '../lease/hold.js';
import { TURN_MS } from '../wait/fairness.js';

/**
 * A hand-off batch ends after this number of leases or {@link TURN_MS}, whichever comes first. So short work costs two requests for
 * many leases. After long work, other processes wait for at most one more section.
 */
export const MAX_LEASES = 64;
/** And with many queued processes, each has had its batch after about so long. */
const ROUND_MS = 1_000;

/**
 * Returns the number of leases to request tokens for, when `waiting` callers of this process wait behind the contender.
 */
export const leasesFor = (waiting: number): number => Math.min(waiting + 1, MAX_LEASES);

/**
 * Begins a hand-off batch of `leases` leases with the first lease's hold.
 *
 * @param waiting number of entries in the wait queue behind it
 */
export const beginBatch = (hold: Hold, leases: number, waiting = 0): void => {
  if (leases < 2) return;
  const nextToken = hold.token === undefined ? undefined : hold.token + 1;
  const batchMs = Math.min(TURN_MS, ROUND_MS / Math.max(1, waiting));
  hold.beginBatch({ leasesLeft: leases - 1, nextToken, until: hold.grantedAt + batchMs });
};

/**
 * Returns the hold for the next lease; undefined when it has to be released. A hold is handed off only from one renewed
 * lease to another: the next holder would inherit a fixed lease that is nearly over.
 *
 * @param caller the next holder
 */
export const handedOffFrom = (hold: Hold, now: number, caller: HoldCaller): Hold | undefined => {
  const { batch } = hold;
  if (!batch || batch.leasesLeft === 0 || now >= batch.until) return undefined;
  if (hold.watchdogMs === undefined || hold.keepUntil > now || !hold.isSound(now)) return undefined;
  // Taken for longer than that, for a minimum time that has not begun: the next holder has not asked for it.
  if (hold.claim.leaseMs > hold.watchdogMs) return undefined;
  const next = hold.successor(batch.nextToken, now, caller);
  batch.leasesLeft--;
  if (batch.nextToken !== undefined) batch.nextToken++;
  return next;
};
