import { kindOf } from '../kinds/kinds.js';
import type { Hold } from '../lease/hold.js';

/**
 * A turn ends after so many leases or so much time, whichever comes first. So short work costs two requests for many
 * leases, and after long work the other processes wait for one more of it at most.
 */
const MOST_LEASES = 64;
export const LONGEST_TURN_MS = 50;

/** How many leases a turn is taken for, when so many callers of this process wait behind the head that takes it. */
export const turnFor = (waiting: number): number => Math.min(waiting + 1, MOST_LEASES);

/** Begins a turn with the first lease's hold, taken for so many leases. */
export const beginTurn = (hold: Hold, leases: number): void => {
  if (leases < 2 || !kindOf(hold.claim.kind).handedOver) return;
  const nextToken = hold.token === undefined ? undefined : hold.token + 1;
  hold.beginTurn({ leasesLeft: leases - 1, nextToken, until: hold.grantedAt + LONGEST_TURN_MS });
};

/**
 * The hold as the next lease has it; undefined when it has to go back to the store. Only from one watched lease to
 * another: the next holder would inherit a fixed lease that is nearly over.
 */
export const passedOn = (hold: Hold, now: number): Hold | undefined => {
  const { turn } = hold;
  if (!turn || turn.leasesLeft === 0 || now >= turn.until) return undefined;
  if (hold.watchdogMs === undefined || hold.keepUntil > now || !hold.isSound(now)) return undefined;
  const next = hold.successor(turn.nextToken, now);
  turn.leasesLeft--;
  if (turn.nextToken !== undefined) turn.nextToken++;
  return next;
};
