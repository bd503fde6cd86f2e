/**
 * What the store does not get right yet, and the simulation therefore leaves out. `ZOOKEEPER_STRICT=downgrades,parents` puts
 * these two in, and `ZOOKEEPER_STRICT=all` everything. Delete an entry, and what depends on it, when the store is repaired.
 */
const strict = (process.env['ZOOKEEPER_STRICT'] ?? '').split(',');
const isLeftOut = (name: string): boolean => !strict.includes(name) && !strict.includes('all');

export const KNOWN = {
  /**
   * A downgrade whose delete had no reply, but was executed: the hold is taken for lost, and the node of the reader stays as
   * long as the session lives.
   */
  downgrades: isLeftOut('downgrades'),
  /**
   * A process stands still for more than two thirds of its session. A follower replies to it, and the leader, which does not
   * know of this yet, ends the session: the hold counts as valid.
   */
  lateReports: isLeftOut('lateReports'),
  /** A hold that others have deleted leaves its place in the process. So a close does not end the session. */
  lostPlaces: isLeftOut('lostPlaces'),
  /** A start that is interrupted leaves the node of its check as long as the session lives. */
  checkNodes: isLeftOut('checkNodes'),
  /** A container above the one to be created is removed between the two requests: the acquire fails. */
  parents: isLeftOut('parents'),
};
