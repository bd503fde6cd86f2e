import type { Claim } from '../../../lib/core/seam/claim.js';
import type { AcquireReply, ExtendReply, KeyState } from '../../../lib/core/seam/reply.js';
import type { Agenda } from '../engine/agenda.js';
import type { Chronicle } from '../engine/chronicle.js';
import type { Quirks } from '../quirks.js';

interface Hold {
  readonly owner: string;
  /** On the server's wall clock. */
  expiresAt: number;
}

type End = 'released' | 'expired' | 'forced' | 'lost';

/** The wall clock of the server at the beginning, in ms. Small, so that tokens can be read. */
const WALL_START = 1_000;

/** The holds in the server, with a time to live on its wall clock, and the fencing tokens. What the scripts do. */
export class Holds {
  private readonly holds = new Map<string, Hold>();
  private lastToken = 0;
  private skewMs = 0;

  constructor(
    private readonly agenda: Agenda,
    private readonly chronicle: Chronicle,
    private readonly quirks: Quirks,
    /** Tells who listens that a key may be free, and says how many that are. */
    private readonly publish: (key: string) => number,
  ) {}

  get owners(): readonly (readonly [key: string, owner: string])[] {
    this.sweep();
    return [...this.holds].map(([key, { owner }]) => [key, owner]);
  }

  acquire({ finalKey: key, owner, leaseMs, tokens: fenceBlock, rearms }: Claim): AcquireReply {
    const hold = this.find(key);
    if (hold && hold.owner !== owner) return { status: 'taken', retryInMs: this.leftOf(hold) };
    const before = hold ? this.leftOf(hold) : 0;
    const least = this.quirks.tokensFromClockAlone ? 0 : this.lastToken + 1;
    const first = Math.max(least, Math.floor(this.wall * 1_000));
    if (fenceBlock > 0) this.lastToken = first + fenceBlock - 1;
    const token = fenceBlock > 0 ? first : undefined;
    this.put(key, owner, leaseMs, token, this.lastToken);
    if (rearms && before > leaseMs && !this.quirks.silentWhenShortened) this.publish(key);
    return { status: 'granted', validForMs: leaseMs, token };
  }

  extend({ finalKey: key, owner, leaseMs }: Claim): ExtendReply {
    const hold = this.find(key);
    if (hold?.owner !== owner) {
      if (hold || !this.quirks.extendCreates) return { status: 'lost' };
      this.put(key, owner, leaseMs, undefined);
      return { status: 'held', validForMs: leaseMs };
    }
    if (this.leftOf(hold) < leaseMs || this.quirks.extendShortens) {
      hold.expiresAt = this.wall + leaseMs;
      const { now: at } = this.agenda;
      this.chronicle.add({ type: 'armed', at, key, owner, until: at + leaseMs });
    }
    return { status: 'held', validForMs: this.leftOf(hold) };
  }

  /** How many were told, or -1 when it was not the owner's. */
  release({ finalKey: key, owner }: Claim, keepForMs?: number): number {
    const hold = this.find(key);
    if (!hold || (hold.owner !== owner && !this.quirks.releaseOfAnyOwner)) return -1;
    const told = this.publish(key);
    if (keepForMs === undefined) this.remove(key, hold, 'released');
    else {
      const { now: at } = this.agenda;
      hold.expiresAt = this.wall + keepForMs;
      this.chronicle.add({ type: 'armed', at, key, owner: hold.owner, until: at + keepForMs });
    }
    return told;
  }

  forceUnlock(key: string): boolean {
    const hold = this.find(key);
    if (!hold) return false;
    this.publish(key);
    this.remove(key, hold, 'forced');
    const { now } = this.agenda;
    const until = now + this.leftOf(hold);
    this.chronicle.add({ type: 'unprotected', at: now, key, until, why: `"${key}" was forced open` });
    return true;
  }

  /** Takes a hold away and tells nobody: somebody deleted the key. */
  delete(key: string): void {
    const hold = this.find(key);
    if (!hold) return;
    this.remove(key, hold, 'lost');
    const { now } = this.agenda;
    const until = now + this.leftOf(hold);
    this.chronicle.add({ type: 'unprotected', at: now, key, until, why: `"${key}" was deleted` });
  }

  inspect(key: string): KeyState | null {
    const hold = this.find(key);
    if (!hold) return null;
    const holder = { owner: hold.owner, count: 1, remainingMs: this.leftOf(hold) };
    return { kind: 'exclusive', holders: [holder], waiting: [] };
  }

  loseAll(why: string): void {
    this.unprotect(why);
    for (const [key, hold] of this.holds) this.remove(key, hold, 'lost');
    this.lastToken = 0;
  }

  /** Sets the wall clock. */
  jump(ms: number): void {
    this.unprotect(`the server's clock jumped by ${ms} ms`);
    this.skewMs += ms;
    this.sweep(this.agenda.now);
  }

  /** Writes down which holds have run out by now: at `at`, or when their time was over. */
  sweep(at?: number): void {
    for (const key of [...this.holds.keys()]) this.find(key, at);
  }

  private get wall(): number {
    return WALL_START + this.agenda.now + this.skewMs;
  }

  private put(
    key: string,
    owner: string,
    leaseMs: number,
    token: number | undefined,
    lastToken = token,
  ): void {
    this.holds.set(key, { owner, expiresAt: this.wall + leaseMs });
    const { now: at } = this.agenda;
    this.chronicle.add({ type: 'hold', at, key, owner, token, lastToken, until: at + leaseMs });
  }

  private find(key: string, freedAt?: number): Hold | undefined {
    const hold = this.holds.get(key);
    if (!hold || this.wall < hold.expiresAt) return hold;
    this.remove(key, hold, 'expired', freedAt ?? hold.expiresAt - WALL_START - this.skewMs);
    return undefined;
  }

  private remove(key: string, { owner }: Hold, how: End, at = this.agenda.now): void {
    this.holds.delete(key);
    this.chronicle.add({ type: 'free', at, key, owner, how });
  }

  /** As Redis counts it: in whole ms. */
  private leftOf(hold: Hold): number {
    return Math.max(1, Math.floor(hold.expiresAt - this.wall));
  }

  /** Until the leases of this moment have run out, nobody may rely on them. */
  private unprotect(why: string): void {
    this.sweep();
    let longest = 0;
    for (const hold of this.holds.values()) longest = Math.max(longest, this.leftOf(hold));
    const { now } = this.agenda;
    this.chronicle.add({ type: 'unprotected', at: now, until: now + longest, why });
  }
}
