import { kindOf } from '../kinds/kinds.js';
import type { Hold } from '../lease/hold.js';

/**
 * Limits of a hand-off batch: it ends after 64 leases or 50 ms, whichever comes first. So short work costs two requests
 * for many leases. After long work, other processes wait for at most one more section.
 */
export const MOST_LEASES = 64;
export const LONGEST_TURN_MS = 50;
/** And where many stand in line, all have had their turn after about so long. */
const ROUND_MS = 1_000;

/**
 * Returns the number of leases to request tokens for, when `waiting` callers of this process wait behind the contender.
 */
export const turnFor = (waiting: number): number => Math.min(waiting + 1, MOST_LEASES);

/**
 * Begins a hand-off batch of `leases` leases with the first lease's hold.
 *
 * @param waiting number of entries in the wait queue behind it
 */
export const beginTurn = (hold: Hold, leases: number, waiting = 0): void => {
  if (leases < 2 || !kindOf(hold.claim.kind).handedOver) return;
  const nextToken = hold.token === undefined ? undefined : hold.token + 1;
  const turnMs = Math.min(LONGEST_TURN_MS, ROUND_MS / Math.max(1, waiting));
  hold.beginTurn({ leasesLeft: leases - 1, nextToken, until: hold.grantedAt + turnMs });
};

/**
 * Returns the hold for the next lease; undefined when it has to be released. A hold is handed off only from one renewed
 * lease to another: the next holder would inherit a fixed lease that is nearly over.
 */
export const passedOn = (hold: Hold, now: number): Hold | undefined => {
  const { turn } = hold;
  if (!turn || turn.leasesLeft === 0 || now >= turn.until) return undefined;
  if (hold.watchdogMs === undefined || hold.keepUntil > now || !hold.isSound(now)) return undefined;
  // Taken for longer than that, for a minimum time that has not begun: the next holder has not asked for it.
  if (hold.claim.leaseMs > hold.watchdogMs) return undefined;
  const next = hold.successor(turn.nextToken, now);
  turn.leasesLeft--;
  if (turn.nextToken !== undefined) turn.nextToken++;
  return next;
};
