import type { Runtime } from '../../core/util/runtime.js';
import { Lane } from '../sql/lane.js';
import { HEIR_MS, type Place, type Places, type Sight, type WakeUps } from '../sql/places.js';
import type { SqlSession, Statement } from '../sql/sql.js';
import { MAX_QUEUED } from '../sql/sql-terms.js';

/** Bells that are waited for at the same time at most, each on a connection. Keys of further ones are only polled. */
const MAX_PARKED = 4;
/** How long a statement waits for a bell at most, in s. */
export const PARKED_S = 2;
/** Time in ms within which such a statement has its reply. */
const TIMEOUT_MS = 3_000;
/** For how long the bell of a key is left alone that has no owner, in ms: its owner may take it soon, or is dead. */
const LEFT_ALONE_MS = { first: 20, longest: 1_000 } as const;
/** A connection that waits for no bell is closed after this time in ms. */
const IDLE_MS = 10_000;
/** Pause in ms until the first process of a wait queue reads again: it may have missed a ring. */
const FIRST_MS = 250;
/** Part of the time until it is the heir after which a process looks where it stands. */
const NEARER = 0.9;

/** What a statement says that has waited for a bell. */
export interface Heard extends Sight {
  /** Whether a process had the bell. One without owner rings at once, and again. */
  readonly hadOwner: boolean;
}

/** A bell without owner: that of the process before a place, or of the holder. */
interface LeftAlone {
  readonly place: Place;
  readonly grants: number;
  readonly isFirst: boolean;
  readonly until: number;
  readonly forMs: number;
}

interface BellHost {
  readonly runtime: Runtime;
  connect(): Promise<SqlSession>;
  /** Gives the bell of this process away, and takes it back. */
  readonly ring: Statement<void>;
  /**
   * Waits for the bell of the process before this one in the wait queue of a key; for the first one, for that of the
   * holder.
   */
  wait(finalKey: string): Statement<Heard>;
}

/**
 * Wakes processes at a release, in a database without notifications. A named lock is the bell of a process, which has
 * it from its first wait on, or once another process has waited for its key. When it gives up a key or its place, it
 * gives the bell away and takes it back. In a wait queue each process waits for the bell of the one before it. So a
 * release wakes one process for each key.
 *
 * The release is committed before the bell rings. A ring between the check of the row and the wait is missed: polling
 * finds that.
 */
export class MysqlBell implements WakeUps {
  private places: Places | undefined;
  /** Keys whose bell is waited for, with the place and its number of grants when that began. */
  private readonly parked = new Map<string, { place: Place; grants: number }>();
  private readonly lanes = new Set<Lane>();
  /** Lanes that wait for nothing, with the timers that close them. */
  private readonly idle = new Map<Lane, unknown>();
  /** Keys whose bell has no owner. */
  private readonly leftAlone = new Map<string, LeftAlone>();
  private own: Lane | undefined;
  private isRinging = false;
  private isToRing = false;
  private closed = false;

  constructor(private readonly host: BellHost) {}

  serve(places: Places): void {
    this.places = places;
  }

  await(place: Place): void {
    const { parked, leftAlone, host } = this;
    if (!this.own) this.ring();
    const { finalKey } = place;
    if (this.closed || parked.has(finalKey) || parked.size >= MAX_PARKED) return;
    // Outside of the wait queue it has no bell to wait for. All processes there would ask at each release.
    if (place.rank === MAX_QUEUED) return;
    const now = host.runtime.now();
    for (const [other, { until, forMs }] of leftAlone) if (until + forMs <= now) leftAlone.delete(other);
    if (now < (this.leavesAlone(place)?.until ?? 0)) return;
    const lane = this.idleLane();
    void this.waitAt(place, lane).finally(() => {
      parked.delete(finalKey);
      this.rests(lane);
      this.places?.poll(finalKey);
    });
  }

  isLive(place: Place): boolean {
    const parked = this.parked.get(place.finalKey);
    return parked?.place === place && parked.grants === place.grants;
  }

  /**
   * First and heir read often: a ring may be missed, and the first one may be dead. The others read when they may be
   * the heir.
   */
  pauseMs({ rank = 0, stepMs }: Place): number {
    const nearerMs = rank === 0 ? FIRST_MS : Math.max(HEIR_MS, (rank - 1) * stepMs * NEARER);
    // The statement that waits for a bell reads, too.
    return nearerMs < PARKED_S * 1_000 ? nearerMs : Infinity;
  }

  /** One ring is for all releases that have come before it. */
  ring(): void {
    this.isToRing = true;
    if (!this.isRinging && !this.closed) void this.ringUntilDone();
  }

  close(): void {
    this.closed = true;
    for (const timer of this.idle.values()) this.host.runtime.clearTimer(timer);
    for (const lane of [this.own, ...this.lanes]) lane?.destroy();
  }

  private lane(): Lane {
    return new Lane({ ...this.host, name: 'MySQL', timeoutMs: TIMEOUT_MS });
  }

  private idleLane(): Lane {
    const [lane = this.lane()] = this.idle.keys();
    this.host.runtime.clearTimer(this.idle.get(lane));
    this.idle.delete(lane);
    this.lanes.add(lane);
    return lane;
  }

  private rests(lane: Lane): void {
    const { idle, lanes, host } = this;
    const end = (): void => {
      idle.delete(lane);
      lanes.delete(lane);
      lane.destroy();
    };
    if (!this.closed) idle.set(lane, host.runtime.setTimer(end, IDLE_MS, true));
  }

  private async ringUntilDone(): Promise<void> {
    this.own ??= this.lane();
    this.isRinging = true;
    while (this.isToRing) {
      this.isToRing = false;
      // Without a reply, processes find the key by polling.
      await this.own.run(() => this.host.ring).catch(() => undefined);
    }
    this.isRinging = false;
  }

  private async waitAt(first: Place, lane: Lane): Promise<void> {
    const { finalKey } = first;
    const { host, leftAlone } = this;
    for (let place = first; ;) {
      this.parked.set(finalKey, { place, grants: place.grants });
      const reply = await lane.run(() => host.wait(finalKey)).catch(() => undefined);
      const still = reply && this.places?.heard(finalKey, reply);
      if (reply && !still) return;
      if (!still || !reply.hadOwner) {
        this.leaveAlone(still ?? place);
        return;
      }
      leftAlone.delete(finalKey);
      place = still;
    }
  }

  /** Asks for the bell again after a pause, if callers wait on. */
  private leaveAlone(place: Place): void {
    const { runtime } = this.host;
    const { first, longest } = LEFT_ALONE_MS;
    const forMs = Math.min(2 * (this.leavesAlone(place)?.forMs ?? first / 2), longest);
    const { finalKey, grants, rank } = place;
    this.leftAlone.set(finalKey, { place, grants, isFirst: rank === 0, until: runtime.now() + forMs, forMs });
    runtime.setTimer(() => void (place.listeners.size > 0 && this.await(place)), forMs, true);
  }

  /** Returns how the bell is left alone that a place waits for now. After a grant, another process is before it. */
  private leavesAlone(place: Place): LeftAlone | undefined {
    const alone = this.leftAlone.get(place.finalKey);
    const isSame =
      alone?.place === place && alone.grants === place.grants && alone.isFirst === (place.rank === 0);
    return isSame ? alone : undefined;
  }
}
