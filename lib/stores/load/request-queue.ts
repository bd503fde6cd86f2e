import { ReadyRequests } from './ready-requests.js';

/** Classes of requests, the most urgent one first. */
const URGENCIES = ['renewal', 'release', 'woken', 'repeated', 'other'] as const;
/** Rank of requests that are sent again. */
const REPEATED = URGENCIES.indexOf('repeated');
/** Number of requests that are looked at for others to send together with one. */
const MAX_LOOKED_AT = 256;

/**
 * How soon a request is sent. `woken`: an acquire of a caller that has waited for its key, or a forced unlock. `repeated`: a
 * request that has been sent without a reply.
 */
export type Urgency = (typeof URGENCIES)[number];

/** A request that waits, as the queue sees it. */
export interface Queued {
  readonly urgency: Urgency;
  /**
   * Requests with a line in common keep the order of their requests, whatever their urgency. Only a renewal passes all but
   * other renewals: what waits before it is of other owners, and may wait long.
   */
  readonly lines: readonly string[];
  /** Owner of an acquire. */
  readonly owner?: string | undefined;
  /** Until when it may be sent. */
  until: number;
  /** For a renewal: from when it lets no other request go first. */
  readonly urgentFrom?: number | undefined;
  /** Its class: that of the most urgent request behind it in its lines. Set by the queue. */
  rank: number;
  /** Number of lines in which others are before it, and 1 more while it may not be sent. Set by the queue. */
  blockers: number;
}

const urgentFrom = (one: Queued): number => one.urgentFrom ?? Infinity;

const isRenewal = (one: Queued): boolean => one.urgency === 'renewal';

/** Appends a request to a line, and returns the length of that. */
const append = <Q>(lines: Map<string, Q[]>, name: string, one: Q): number => {
  const line = lines.get(name);
  if (line) return line.push(one);
  lines.set(name, [one]);
  return 1;
};

/** Removes a request from a line. Returns the one that is the first now instead of it. */
const remove = <Q>(lines: Map<string, Q[]>, name: string, one: Q): Q | undefined => {
  const line = lines.get(name)!;
  const at = line.indexOf(one);
  line.splice(at, 1);
  if (line.length === 0) lines.delete(name);
  return at === 0 ? line[0] : undefined;
};

/** Requests that wait. Decides which is sent next. */
export class RequestQueue<Q extends Queued> {
  /** Requests that were not deleted yet. */
  readonly all = new Set<Q>();
  private readonly lines = new Map<string, Q[]>();
  /** The renewals among them. */
  private readonly renewals = new Map<string, Q[]>();
  /** Requests that may be sent, by rank. */
  private readonly ready = URGENCIES.map(() => new ReadyRequests<Q>());
  private hasRenewed = false;

  add(one: Q): void {
    this.all.add(one);
    one.rank = URGENCIES.indexOf(one.urgency);
    for (const name of one.lines) {
      const length = append(this.lines, name, one);
      if ((isRenewal(one) ? append(this.renewals, name, one) : length) > 1) one.blockers += 1;
    }
    if (one.blockers === 0) this.isReady(one);
    else if (!isRenewal(one)) this.raiseBefore(one, one.rank);
  }

  /** Returns the request to send, and keeps it at the head of its lines until {@link delete} or {@link hold}. */
  next(now: number): Q | undefined {
    const [renewals, ...others] = this.ready;
    const renewal = renewals!.first;
    let other: Q | undefined;
    for (const ready of others) other ??= ready.first;
    const givesWay = other && renewal && this.hasRenewed && now < urgentFrom(renewal);
    const next = givesWay ? other : (renewal ?? other);
    this.hasRenewed = next !== undefined && next === renewal;
    if (next) this.ready[next.rank]!.delete(next);
    return next;
  }

  /** Returns further requests that may be sent, at most `count`, the most urgent first; as {@link next} does. */
  more(count: number, fits: (one: Q) => boolean): Q[] {
    const found: Q[] = [];
    let looks = MAX_LOOKED_AT;
    for (const ready of this.ready) {
      for (const one of ready) {
        if (found.length >= count || looks-- === 0) return found;
        if (fits(one) && ready.delete(one)) found.push(one);
      }
    }
    return found;
  }

  /** Keeps a request, which was returned by {@link next}, from being sent until {@link resume}. */
  hold(one: Q): void {
    one.blockers += 1;
  }

  resume(one: Q): void {
    if (!this.all.has(one)) return;
    one.rank = Math.min(one.rank, REPEATED);
    this.unblock(one);
  }

  delete(one: Q): void {
    if (!this.all.delete(one)) return;
    this.ready[one.rank]!.delete(one);
    for (const name of one.lines) {
      const first = remove(this.lines, name, one);
      if (first && !isRenewal(first)) this.unblock(first);
      const renewal = isRenewal(one) ? remove(this.renewals, name, one) : undefined;
      if (renewal) this.unblock(renewal);
    }
  }

  /** Returns the acquire of an owner, sent or not. */
  acquireOf(line: string, owner: string): Q | undefined {
    return this.lines.get(line)?.find((one) => one.owner === owner);
  }

  private unblock(one: Q): void {
    one.blockers -= 1;
    if (one.blockers === 0) this.isReady(one);
  }

  private isReady(one: Q): void {
    this.ready[one.rank]!.add(one, one.urgentFrom);
  }

  /** What waits behind others makes them as urgent as itself. */
  private raiseBefore(one: Q, rank: number): void {
    for (const name of one.lines) {
      for (const earlier of this.lines.get(name)!) {
        if (earlier === one) break;
        if (earlier.rank <= rank) continue;
        const wasReady = this.ready[earlier.rank]!.delete(earlier);
        earlier.rank = rank;
        if (wasReady) this.isReady(earlier);
        this.raiseBefore(earlier, rank);
      }
    }
  }
}
