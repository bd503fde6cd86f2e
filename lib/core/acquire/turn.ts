import { kindOf } from '../kinds/kinds.js';
import type { Hold } from '../lease/hold.js';

/**
 * A turn ends after so many leases or so much time, whichever comes first. So short work costs two requests for many
 * leases, and after long work the other processes wait for one more of it at most.
 */
export const MOST_LEASES = 64;
export const LONGEST_TURN_MS = 50;
/** And where many stand in line, all have had their turn after about so long. */
const ROUND_MS = 1_000;

/** How many leases a turn is taken for, when so many callers of this process wait behind the head that takes it. */
export const turnFor = (waiting: number): number => Math.min(waiting + 1, MOST_LEASES);

/** Begins a turn with the first lease's hold, taken for so many leases. `waiting`: how many stand in line behind it. */
export const beginTurn = (hold: Hold, leases: number, waiting = 0): void => {
  if (leases < 2 || !kindOf(hold.claim.kind).handedOver) return;
  const nextToken = hold.token === undefined ? undefined : hold.token + 1;
  const turnMs = Math.min(LONGEST_TURN_MS, ROUND_MS / Math.max(1, waiting));
  hold.beginTurn({ leasesLeft: leases - 1, nextToken, until: hold.grantedAt + turnMs });
};

/**
 * The hold as the next lease has it; undefined when it has to go back to the store. Only from one watched lease to
 * another: the next holder would inherit a fixed lease that is nearly over.
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
