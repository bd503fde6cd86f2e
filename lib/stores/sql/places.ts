import { holderOf } from '../../core/seam/process-record.js';
import type { Runtime } from '../../core/util/runtime.js';
import type { Claim } from '../../core/seam/claim.js';
import type { Watch, WatchListener } from '../../core/seam/lock-store.js';
import type { AcquireReply } from '../../core/seam/reply.js';
import { DIGEST, MAX_QUEUED, nameTextOf, TURN_US, US } from './sql-terms.js';

/** Shortest pause in ms of a process that hears nothing, for each process before it; of the first one. */
const LEAST_MS = 5;
/** Longest pause in ms of the first one, and of the ones behind the heir. */
const FIRST_MS = 100;
const OTHERS_MS = 1_800;
/** Pause in ms of a process that hears each message. */
export const SELDOM_MS = 1_800;
/** Pause in ms of the heir: with its variation, it reads at least once while the first one has its turn. */
export const HEIR_MS = 200;
/** Pause in ms of a process for which the wait queue has no room. */
const OUTSIDE_MS = 900;
/** Time in ms beyond the turn of the first one, after which its heir reads the row: at least, and how much more. */
const HEIR_LATE_MS = [5, 20] as const;

/** What a statement says about the wait queue of a key. */
export interface Sight {
  /** Time in ms until this process may take the key. */
  readonly freeInMs: number;
  /** Number of processes before this one; before its end for one that is not in the queue. Undefined for kinds without turns. */
  readonly rank?: number | undefined;
}

/** Returns the reply to a refused acquire. Only the first process and its heir have a time at which they ask again. */
export const takenOf = (freeInMs: number, rank: number, isExclusive: boolean): AcquireReply & Sight => ({
  status: 'taken',
  retryInMs: rank < 2 ? Math.max(1, freeInMs) : Infinity,
  ...(!isExclusive && { heldAs: 'permit' }),
  ...{ freeInMs: Math.max(1, freeInMs), rank },
});

/** How a process hears of releases. */
export interface WakeUps {
  /** Passes messages to these places from now on. */
  serve(places: Places): void;
  /** Callers wait at a place. */
  await(place: Place): void;
  /** Whether messages about a place arrive now. */
  isLive(place: Place): boolean;
  /** Pause in ms until a place is polled that is live. */
  pauseMs(place: Place): number | undefined;
  /** A process has given up a key, or its place, for which others wait. */
  ring?(): void;
}

/** The place of this process at a key: what it knows of the wait queue there, and the callers that wait. */
export class Place {
  /** The services whose callers wait, each with an owner of it. Callers of one service share a listener. */
  readonly listeners = new Map<WatchListener, string>();
  /**
   * See {@link Sight.rank}. Undefined before the first reply, and for kinds without turns; `MAX_QUEUED` outside of a full
   * wait queue; infinite after a grant, until the next reply.
   */
  rank: number | undefined;
  /** Number of requests under way. */
  requests = 0;
  /** Whether the process may be in the wait queue. */
  isQueued = false;
  /** Whether a message said that the key is free when no caller listened. */
  isCalled = false;
  /** Whether processes waited for the key when it was seen last. */
  isCrowded = false;
  /** Number of grants so far. */
  grants = 0;
  /** Time in ms that each process before this one takes, as far as is known. */
  stepMs = 0;
  /** For how long the rank was the same when it was seen last, in ms. */
  lastedMs = 0;
  private changedAt = 0;

  constructor(readonly finalKey: string) {}

  seen(rank: number | undefined, now: number): void {
    const { rank: before = MAX_QUEUED } = this;
    this.rank = rank;
    if (rank === undefined) return;
    const lastedMs = now - this.changedAt;
    this.lastedMs = before === rank ? lastedMs : 0;
    if (before === rank) this.stepMs = Math.max(this.stepMs, lastedMs);
    else {
      if (before < MAX_QUEUED) this.stepMs = lastedMs / Math.max(1, before - rank);
      this.changedAt = now;
    }
  }

  /** Whether callers of other services wait. That of an owner may not wait yet. */
  othersWait(owner: string): boolean {
    return [...this.listeners.values()].some((other) => serviceOf(other) !== serviceOf(owner));
  }

  /** The process holds the key. `staysQueued`: it is still in the wait queue. */
  granted(staysQueued: boolean): void {
    this.grants += 1;
    this.isCalled = false;
    this.isQueued &&= staysQueued;
    if (this.rank !== undefined) this.rank = Infinity;
  }
}

/** The places of this process at the keys of one kind. */
export class Places {
  private readonly places = new Map<string, Place>();

  constructor(
    private readonly runtime: Runtime,
    private readonly wakeUps: WakeUps | undefined,
    /** Leaves the wait queue of a key in the store. */
    private readonly leaveQueue: (finalKey: string) => void,
  ) {
    wakeUps?.serve(this);
  }

  /** Whether callers wait. */
  get isWaiting(): boolean {
    return [...this.places.values()].some(({ listeners }) => listeners.size > 0);
  }

  /** Returns the place of a key, by its name in the table. */
  of(name: string): Place | undefined {
    const { places } = this;
    if (!name.startsWith(DIGEST)) return places.get(name);
    return [...places.values()].find(({ finalKey }) => nameTextOf(finalKey) === name);
  }

  /** A request for a key begins. Call {@link requested} in the end. */
  request(finalKey: string): Place {
    const place = this.places.get(finalKey) ?? new Place(finalKey);
    this.places.set(finalKey, place);
    place.requests += 1;
    return place;
  }

  requested(place: Place): void {
    place.requests -= 1;
    // A caller that gave up meanwhile opens no watch that would be closed.
    if (place.isQueued || place.isCalled) this.runtime.soon(() => this.leave(place));
    else this.leave(place);
  }

  watch({ finalKey, owner }: Pick<Claim, 'finalKey' | 'owner'>, listener: WatchListener): Watch {
    const { wakeUps } = this;
    const place = this.request(finalKey);
    place.requests -= 1;
    place.listeners.set(listener, owner);
    wakeUps?.await(place);
    if (place.isCalled) this.called(place);
    return {
      get live() {
        return place.listeners.has(listener) && (wakeUps?.isLive(place) ?? false);
      },
      get pauseMs() {
        return pauseMsOf(place, wakeUps);
      },
      close: () => {
        place.listeners.delete(listener);
        this.leave(place);
      },
    };
  }

  /** A statement has read the row of a key. Returns the place if callers wait on. */
  seen(finalKey: string, { rank, freeInMs }: Sight): Place | undefined {
    const place = this.places.get(finalKey);
    place?.seen(rank, this.runtime.now());
    if (!place || place.listeners.size === 0 || freeInMs === 0) return undefined;
    this.wakeUps?.await(place);
    return place;
  }

  /** The same of a statement that has waited for a message. */
  heard(finalKey: string, sight: Sight): Place | undefined {
    const place = this.places.get(finalKey);
    place?.seen(sight.rank, this.runtime.now());
    if (!place || place.listeners.size === 0) return undefined;
    if (sight.freeInMs === 0) this.called(place);
    else this.poll(finalKey, sight.freeInMs);
    return sight.freeInMs === 0 ? undefined : place;
  }

  /** The pause until a key is polled has changed, or the key may be free sooner. */
  poll(name: string, freeInMs = Infinity): void {
    for (const listener of this.of(name)?.listeners.keys() ?? []) listener.freeIn?.(freeInMs);
  }

  /** A message says that a key is free for this process. Without a caller that waits, the next process hears it. */
  free(name: string): void {
    const place = this.of(name);
    if (place) this.called(place);
    else this.leaveQueue(name);
  }

  /** A message says that a key is free for the process before this one. */
  next(name: string): void {
    const [leastMs, moreMs] = HEIR_LATE_MS;
    this.poll(name, TURN_US / US + leastMs + moreMs * this.runtime.random());
  }

  /** Messages may have been lost, or something about a key has changed. */
  wake(places: Iterable<Place | undefined> = this.places.values()): void {
    for (const place of [...places])
      for (const listener of [...(place?.listeners.keys() ?? [])]) listener.notified();
  }

  /** The process has given up a key, or its place there. */
  released(finalKey: string, othersWait: boolean): void {
    const place = this.places.get(finalKey);
    if (place) place.isCrowded = othersWait;
    if (othersWait) this.wakeUps?.ring?.();
  }

  /** Leaves all wait queues, before the store closes. */
  close(): void {
    for (const place of [...this.places.values()]) if (place.isQueued) this.leaveQueue(place.finalKey);
    this.places.clear();
  }

  private called(place: Place): void {
    const { listeners } = place;
    place.isCalled = listeners.size === 0;
    this.wake([place]);
    const [first] = listeners;
    if (first && listeners.delete(first[0])) listeners.set(...first);
  }

  /** Leaves the wait queue when no caller waits: a process that keeps its turn delays the next ones. */
  private leave(place: Place): void {
    const { finalKey, listeners, requests, isQueued, isCalled } = place;
    if (listeners.size > 0 || requests > 0 || this.places.get(finalKey) !== place) return;
    this.places.delete(finalKey);
    if (isQueued || isCalled) this.leaveQueue(finalKey);
  }
}

/** Returns the service to which an owner belongs. */
const serviceOf = (owner: string): string => holderOf(owner)?.instanceId ?? owner;

const between = (ms: number, least: number, most: number): number => Math.min(Math.max(ms, least), most);

/** Returns the pause in ms until a place is polled; undefined for kinds without turns. */
const pauseMsOf = (place: Place, wakeUps: WakeUps | undefined): number | undefined => {
  const { rank, stepMs, lastedMs } = place;
  if (rank === undefined) return undefined;
  if (rank >= MAX_QUEUED) return OUTSIDE_MS;
  if (wakeUps?.isLive(place)) return wakeUps.pauseMs(place);
  if (rank === 0) return between(lastedMs / 4, LEAST_MS, FIRST_MS);
  return between((rank * stepMs) / 2, rank * LEAST_MS, rank === 1 ? HEIR_MS : OTHERS_MS);
};
