import type { Session } from '../../core/seam/lease-model.js';
import type { SessionGrant } from './zk-connection.js';

/**
 * Part of the time-out that is counted on. The rest is for clocks that run at different rates. From 8 s on it covers a sleep of
 * the machine that is too short to be noticed.
 */
const KNOWN_PART = 7 / 8;
/**
 * The same from a connection on: a leader that has lost its followers takes up sessions for some ticks, while another one is
 * elected.
 */
const CONNECTED_PART = 2 / 3;
/**
 * Part of the time-out within which a server has told the leader of a session: it does so each half tick, and the shortest
 * session has two ticks. The rest is for a leader that asks late.
 */
const TOLD_PART = 9 / 32;
/** Requests that were sent within this part of the time-out after another one are not remembered: few are enough. */
const BESIDE_PART = 1 / 32;

/** A request to which the leader has replied. */
interface Heard {
  readonly sentAt: number;
  readonly repliedAt: number;
}

/**
 * Holds and claims of one session. They end with it.
 *
 * The leader ends a session that no server has told it of for the time-out. A server may pass on replies of the leader, and die
 * before it tells. So a session is valid from the sending of the newest request of which the leader certainly knows.
 *
 * The leader knows of a request when it has replied to a later one over the same connection, which was sent long enough after
 * the reply to the first one. The server has told of the session meanwhile, over the connection by which it passes requests on.
 */
export class Life implements Session {
  readonly ending = new AbortController();
  /** When the present connection was asked for. */
  private connectedFrom = -Infinity;
  /** Later ones over the present connection, in order. */
  private unsure: Heard[] = [];

  /**
   * @param granted what the server granted last: another server may grant a shorter time-out
   * @param knownFrom when the newest request was sent of which the leader certainly knows: at first the one that began the
   * session, since a majority has to agree to that
   */
  constructor(
    public granted: SessionGrant,
    private knownFrom: number,
  ) {}

  get validUntil(): number {
    const { connectedFrom, knownFrom } = this;
    const { timeoutMs } = this.granted;
    return Math.max(connectedFrom + timeoutMs * CONNECTED_PART, knownFrom + timeoutMs * KNOWN_PART);
  }

  get over(): AbortSignal {
    return this.ending.signal;
  }

  /** A server has begun or taken up the session, which it asks the leader for, after it was asked for that. */
  connected(askedAt: number, repliedAt: number): void {
    this.connectedFrom = askedAt;
    this.unsure = [{ sentAt: askedAt, repliedAt }];
  }

  /** The leader has replied to a request. */
  heard(sentAt: number, repliedAt: number): void {
    const { unsure } = this;
    const { timeoutMs } = this.granted;
    while (unsure[0] && unsure[0].repliedAt <= sentAt - timeoutMs * TOLD_PART)
      this.knownFrom = unsure.shift()!.sentAt;
    const last = unsure.at(-1)?.sentAt ?? -Infinity;
    if (sentAt >= last + timeoutMs * BESIDE_PART) unsure.push({ sentAt, repliedAt });
  }
}
