import type { Session } from '../../core/seam/lease-model.js';
import type { SessionGrant } from './zk-connection.js';

/**
 * Part of the time-out that is not counted on: a server may pass on a reply of the leader, and die before it tells the
 * leader that the session lives. So a session is valid for the rest, from when the newest request was sent to which the
 * leader has replied.
 */
const MARGIN_PART = 1 / 3;

/** What lives as long as one session in the server. */
export class Life implements Session {
  readonly ending = new AbortController();
  /** When the newest request was sent to which the leader has replied. */
  heardFrom = -Infinity;

  /** @param granted what the server granted last: another server may grant a shorter time-out */
  constructor(public granted: SessionGrant) {}

  get validUntil(): number {
    return this.heardFrom + this.granted.timeoutMs * (1 - MARGIN_PART);
  }

  get over(): AbortSignal {
    return this.ending.signal;
  }
}
