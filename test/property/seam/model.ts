import { expect } from 'vitest';
import type { ExclusiveClaim } from '../../../lib/core/seam/claim.js';
import type { AcquireReply } from '../../../lib/core/seam/reply.js';
import type { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { claimFor, newKey, newOwner, type WakeUpCounter } from '../../support/stores/harness.js';
import { ACTORS, type World } from './world.js';

export const KEYS = 2;

/** What one actor knows of one key. */
interface Seat {
  /** The owner id it uses now. */
  owner: string;
  /** The one it gave up last. */
  stale: string;
  watch: WakeUpCounter | undefined;
  /** An acquire without an answer, of the owner it uses now. */
  unsettled: { readonly claim: ExclusiveClaim; readonly failure: StoreFailure } | undefined;
}

interface ModelKey {
  readonly name: string;
  hold: { readonly owner: string; endsAt: number } | undefined;
  lastToken: number;
  readonly seats: readonly Seat[];
}

const newSeat = (): Seat => ({
  owner: newOwner(),
  stale: newOwner(),
  watch: undefined,
  unsettled: undefined,
});

/** What a store of locks is, in a few lines: who has each key, until when, and the last token. */
export class Model {
  private now = 0;
  readonly keys: readonly ModelKey[] = Array.from({ length: KEYS }, () => ({
    name: newKey('model'),
    hold: undefined,
    lastToken: 0,
    seats: Array.from({ length: ACTORS }, newSeat),
  }));

  constructor(private readonly world: World) {}

  claim(key: ModelKey, actor: number, overrides: Partial<ExclusiveClaim>): ExclusiveClaim {
    return claimFor(key.name, { owner: key.seats[actor]!.owner, ...overrides });
  }

  holds(key: ModelKey, actor: number): boolean {
    return key.hold?.owner === key.seats[actor]!.owner;
  }

  isTakenFrom(key: ModelKey, owner: string): boolean {
    return key.hold !== undefined && key.hold.owner !== owner;
  }

  take(key: ModelKey, owner: string, leaseMs: number): void {
    key.hold = { owner, endsAt: this.world.hasSessions ? Infinity : this.now + leaseMs };
  }

  lengthen(key: ModelKey, leaseMs: number): void {
    if (key.hold) key.hold.endsAt = Math.max(key.hold.endsAt, this.now + leaseMs);
  }

  leftMs(key: ModelKey): number {
    return (key.hold?.endsAt ?? this.now) - this.now;
  }

  /** An owner id is never used again once a release or an undo of it was sent. */
  giveUpOwner(key: ModelKey, actor: number): void {
    const seat = key.seats[actor]!;
    if (key.hold?.owner === seat.owner) key.hold = undefined;
    seat.stale = seat.owner;
    seat.owner = newOwner();
  }

  pass(ms: number): void {
    this.now += ms;
    for (const key of this.keys) if (key.hold && key.hold.endsAt <= this.now) key.hold = undefined;
  }

  /** What is left is known exactly where time stands still, else to less than the unit of all durations. */
  expectLeft(key: ModelKey, ms: number): void {
    if (this.world.hasSessions) return;
    const less = this.leftMs(key) - ms;
    expect(less).toBeGreaterThanOrEqual(0);
    if (this.world.virtualTime) expect(less).toBe(0);
    else expect(less).toBeLessThan(this.world.unitMs);
  }

  /** Compares the answer to a claim, and takes in what it did. */
  expectReply(
    key: ModelKey,
    { owner, leaseMs, tokens: fenceBlock }: ExclusiveClaim,
    reply: AcquireReply,
  ): void {
    if (this.isTakenFrom(key, owner)) {
      expect(reply.status).toBe('taken');
      if (reply.status === 'taken') this.expectLeft(key, reply.retryInMs);
      return;
    }
    expect(reply.status).toBe('granted');
    if (reply.status !== 'granted') return;
    const isNew = key.hold === undefined;
    this.take(key, owner, leaseMs);
    expect(reply.validForMs).toBe(this.world.promisedMs?.(leaseMs) ?? leaseMs);
    if (fenceBlock === 0) return expect(reply.token).toBeUndefined();
    expect(Number.isSafeInteger(reply.token)).toBe(true);
    // A hold of a session has one token for all of its life.
    const isFurther = isNew || !this.world.hasSessions;
    expect(reply.token).toBeGreaterThan(isFurther ? key.lastToken : key.lastToken - 1);
    key.lastToken = reply.token! + (reply.tokens ?? fenceBlock) - 1;
  }

  /** Runs what ends a hold, or lets it end sooner, and waits until all who watch the key have been told. */
  async notifying<T>(key: ModelKey, notifies: boolean, action: () => Promise<T>): Promise<T> {
    const watchers = key.seats.flatMap(({ watch }) => watch ?? []);
    const seen = watchers.map(({ count }) => count);
    const result = await action();
    if (notifies) await Promise.all(watchers.map((watch, i) => watch.next(seen[i])));
    return result;
  }
}
