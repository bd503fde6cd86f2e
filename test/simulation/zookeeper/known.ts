/**
 * What the store does not get right yet, and the simulation therefore leaves out. `ZOOKEEPER_STRICT=1` puts it in. Delete an
 * entry, and what depends on it, when the store is repaired.
 */
const STRICT = process.env['ZOOKEEPER_STRICT'] === '1';

export const KNOWN = {
  /**
   * A downgrade whose delete had no reply, but was executed: the hold is taken for lost, and the node of the reader stays as
   * long as the session lives.
   */
  downgrades: !STRICT,
  /**
   * A process stands still for more than two thirds of its session. A follower replies to it, and the leader, which does not
   * know of this yet, ends the session: the hold counts as valid.
   */
  lateReports: !STRICT,
  /** A hold that others have deleted leaves its place in the process. So a close does not end the session. */
  lostPlaces: !STRICT,
  /** A start that is interrupted leaves the node of its check as long as the session lives. */
  checkNodes: !STRICT,
  /** A container above the one to be created is removed between the two requests: the acquire fails. */
  parents: !STRICT,
};
