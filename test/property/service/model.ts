import { randomUUID } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { expect } from 'vitest';
import type { Lease } from '../../../lib/core/lease/lease.js';
import type { LockError } from '../../../lib/core/errors/lock.errors.js';
import type { Watched } from '../../support/core/core-under-test.js';
import type { Opened } from './actor.js';
import { WATCHDOG_MS, type World } from './world.js';

export const ACTORS = 4;
export const KEYS = 3;

/** One owner's hold of one key. */
export interface Hold {
  readonly service: number;
  readonly key: string;
  readonly token: number;
  /** Infinity while the watchdog renews it. */
  endsAt: number;
  /** Whether the store has it. When it has not, its service may not know yet. */
  inStore: boolean;
  /** Whether its service knows that it is gone. */
  isLost: boolean;
  /** The longest that its holder has asked for. */
  longestMs: number;
  /** Without what its leases asked for beyond it. */
  readonly own: { readonly endsAt: number; readonly leaseMs: number };
  /** Until when its leases want it. */
  readonly demands: Map<Lease, number>;
}

/** A lease or an open section of an actor. What is nested has the hold of an enclosing one. */
export interface Entry {
  readonly opened: Opened;
  readonly service: number;
  parts: readonly { readonly hold: Hold; readonly isOwn: boolean }[];
  /** Its lease was given back by hand, though the section goes on. */
  isReleased?: boolean;
  /** The section that its call was proven inside of. */
  readonly outer: Entry | undefined;
  /** Whether it was taken, and does not only run inside of another lease. */
  readonly isLease: boolean;
  readonly throwsWhenLost: boolean;
}

/** A lease that is over, and that its actor still has. */
export interface Ended {
  readonly lease: Lease;
  readonly wasLost: boolean;
}

/** A caller that has asked and was not answered yet. */
export interface Pending {
  readonly actor: number;
  /** The section that the call is proven inside of; undefined for an ordinary caller. */
  readonly outer: Entry | undefined;
  readonly service: number;
  /** In the order in which they are taken. */
  readonly keys: readonly string[];
  readonly deadline: number;
  readonly leaseMs: number | undefined;
  readonly throwsWhenLost: boolean;
  readonly caller: AbortController;
  readonly result: Watched<Opened | null>;
  /** Whether somebody was, or may have been, in the way when it asked. */
  readonly wasBlocked: boolean;
  /** Whether it asked inside a lock that was lost, of which its service knew. */
  readonly isInLost: boolean;
}

const gone = (hold: Hold): Hold => ({ ...hold, inStore: false, isLost: true });

/** What several services on one store do, in a few rules. Who is next of two services, it learns from them. */
export class Model {
  private readonly id = randomUUID();
  readonly keys: readonly string[] = Array.from({ length: KEYS }, (_, i) => `${this.id}:${i}`);
  /** For each actor its leases and sections; the last is the innermost. */
  readonly stacks: readonly Entry[][] = Array.from({ length: ACTORS }, () => []);
  /** For each actor what it had. */
  readonly ended: Ended[][] = Array.from({ length: ACTORS }, () => []);
  /** In the order in which they have asked. */
  readonly pending: Pending[] = [];
  private holds: Hold[] = [];
  private readonly lastTokens = new Map<string, number>();

  constructor(readonly world: World) {}

  /** What the store has, as far as leases tell. */
  liveHold(key: string): Hold | undefined {
    return this.holds.find((hold) => hold.key === key && hold.inStore);
  }

  /** What the service believes in, and its keys are not for others of its callers. */
  believedBy(service: number): readonly Hold[] {
    return this.holds.filter((hold) => hold.service === service && !hold.isLost);
  }

  /** The innermost section of the actor. */
  section(actor: number): Entry | undefined {
    return this.stacks[actor]!.findLast(({ opened }) => opened.inside);
  }

  /** The innermost of these sections, of which each is proven inside of the next, that has the key, or has lost it. */
  enclosing(innermost: Entry | undefined, service: number, key: string): Entry | undefined {
    for (let entry = innermost; entry; entry = entry.outer)
      if (entry.service === service && entry.parts.some(({ hold }) => hold.key === key)) return entry;
    return undefined;
  }

  /** Whether a section around what the actor does next has the key, as far as its service knows. */
  isHeldAround(actor: number, service: number, key: string): boolean {
    return this.stacks[actor]!.some(
      (entry) =>
        entry.opened.inside &&
        entry.service === service &&
        entry.parts.some(({ hold }) => hold.key === key && !hold.isLost),
    );
  }

  pendingOf(actor: number): Pending | undefined {
    return this.pending.find((pending) => pending.actor === actor);
  }

  /** The one caller of a service that takes several keys and waits. */
  takerOfSeveral(service: number): Pending | undefined {
    return this.pending.find((pending) => pending.service === service && pending.keys.length > 1);
  }

  isHeldFrom(service: number, key: string): boolean {
    return this.liveHold(key) !== undefined || this.believedBy(service).some((hold) => hold.key === key);
  }

  /** Time has passed; `renewed`: so much that the watchdog has noticed what there was to notice. */
  age(renewed: boolean): void {
    for (const hold of this.holds) {
      if (hold.endsAt <= this.world.now()) hold.inStore = false;
      if (hold.endsAt <= this.world.now() || (renewed && hold.endsAt === Infinity && !hold.inStore)) {
        hold.isLost = true;
      }
    }
  }

  /** The store has it no more. A service knows that when it has asked for it. */
  force(service: number, key: string): void {
    for (const hold of this.holds) {
      if (hold.key !== key) continue;
      hold.inStore = false;
      if (hold.service === service) hold.isLost = true;
    }
  }

  /** Whether a call that is proven inside of a section would enter one that has lost the key. */
  isInLost(outer: Entry | undefined, service: number, key: string): boolean {
    const parts = this.enclosing(outer, service, key)?.parts ?? [];
    return parts.some(({ hold }) => hold.key === key && hold.isLost);
  }

  /** A lease is given back by hand while its section runs: whoever is inside has lost it. */
  releaseByHand(actor: number, entry: Entry): void {
    const stack = this.stacks[actor]!;
    const released = new Set(entry.parts.map(({ hold }) => hold));
    for (const inner of stack.slice(stack.indexOf(entry) + 1)) {
      const isSame = inner.opened.lease === entry.opened.lease;
      if (isSame) inner.isReleased = true;
      inner.parts = inner.parts
        .filter(({ hold }) => !isSame || !released.has(hold))
        .map((part) => (released.has(part.hold) ? { hold: gone(part.hold), isOwn: false } : part));
    }
    this.drop(entry);
    entry.parts = [];
    entry.isReleased = true;
  }

  /** The lease or the section is over. */
  drop(entry: Entry): void {
    const own = new Set(entry.parts.filter(({ isOwn }) => isOwn).map(({ hold }) => hold));
    this.holds = this.holds.filter((hold) => !own.has(hold));
    if (entry.isLease) for (const { hold } of entry.parts) this.dropDemand(hold, entry.opened.lease);
  }

  /** A lease that extended a hold is over: the hold lasts only as long as the others want it. */
  private dropDemand(hold: Hold, lease: Lease): void {
    const { own, demands } = hold;
    if (!demands.delete(lease)) return;
    const now = this.world.now();
    const ownEnd = own.endsAt > now ? own.endsAt : now + own.leaseMs;
    hold.endsAt = Math.min(hold.endsAt, Math.max(ownEnd, ...demands.values()));
  }

  /** A service that heard of a forced unlock elsewhere has looked, and knows. One that did not hear of it need not. */
  private learn(): void {
    for (const hold of this.holds) {
      if (hold.inStore || hold.isLost) continue;
      const held = this.world.services[hold.service]!.held();
      hold.isLost = !held.some(({ key, fencingToken }) => key === hold.key && fencingToken === hold.token);
    }
  }

  /** Takes in what has become of those who have asked. */
  observe(): void {
    this.learn();
    for (const pending of [...this.pending]) {
      const { state, value } = pending.result;
      if (state === 'pending') continue;
      if (state === 'fulfilled' && value) this.admit(pending, value);
      else this.expectRefusal(pending);
      this.pending.splice(this.pending.indexOf(pending), 1);
      expect(getEventListeners(pending.caller.signal, 'abort')).toEqual([]);
    }
  }

  private admit(pending: Pending, opened: Opened): void {
    const { actor, outer, service, keys, throwsWhenLost } = pending;
    this.expectInOrder(pending);
    const parts = keys.map((key) => {
      const token = opened.lease.tokenFor(key);
      const around = this.enclosing(outer, service, key)?.parts.find(({ hold }) => hold.token === token);
      return around
        ? { hold: around.hold, isOwn: false }
        : { hold: this.grant(pending, key, opened), isOwn: true };
    });
    this.stacks[actor]!.push({ opened, service, parts, outer, isLease: true, throwsWhenLost });
  }

  private grant({ service, leaseMs }: Pending, key: string, { lease }: Opened): Hold {
    expect(this.liveHold(key), 'nobody else has the key').toBeUndefined();
    const token = lease.tokenFor(key);
    expect(token).toBeGreaterThan(this.lastTokens.get(key) ?? 0);
    this.lastTokens.set(key, token);
    const { remainingMs } = this.world.services[service]!.held().find((held) => held.key === key)!;
    const endsAt = leaseMs === undefined ? Infinity : this.world.now() + remainingMs;
    const longestMs = Math.max(WATCHDOG_MS, leaseMs ?? 0);
    const own = { endsAt, leaseMs: leaseMs ?? Infinity };
    const demands = new Map<Lease, number>();
    const hold = { service, key, token, endsAt, inStore: true, isLost: false, longestMs, own, demands };
    this.holds.push(hold);
    return hold;
  }

  /** Callers of one service that want the same one key get it in the order in which they asked. */
  private expectInOrder(pending: Pending): void {
    const { outer, service, keys } = pending;
    if (keys.length > 1 || this.enclosing(outer, service, keys[0]!)) return;
    const before = this.pending.slice(0, this.pending.indexOf(pending));
    const passedOver = before.filter(
      (other) => other.service === service && other.keys.length === 1 && other.keys[0] === keys[0],
    );
    expect(passedOver).toEqual([]);
  }

  private expectRefusal({ result, caller, deadline, wasBlocked, isInLost }: Pending): void {
    const code = result.state === 'fulfilled' ? 'LOCK_TAKEN' : (result.error as LockError).code;
    if (caller.signal.aborted) return expect(code).toBe('LOCK_ABORTED');
    if (isInLost) return expect(code).toBe('LOCK_LOST');
    expect(code).toBe('LOCK_TAKEN');
    expect(wasBlocked, 'somebody was in the way').toBe(true);
    expect(this.world.now(), 'the wait is over').toBeGreaterThanOrEqual(deadline);
  }
}
