import type { AcquireReply, Claim, ExtendReply } from '../../../lib/core/claim.js';
import type { Agenda } from '../engine/agenda.js';
import type { Chronicle } from '../engine/chronicle.js';
import type { Host, Session } from '../network/session.js';
import type { Quirks } from '../quirks.js';
import type { Command, Refusal, Reply, Value } from './commands.js';

interface Hold {
  readonly owner: string;
  /** On the server's wall clock. */
  expiresAt: number;
}

/** What the server answers to writes for a while, instead of doing them. */
export type Mood = 'readonly' | 'tryagain' | 'loading' | 'oom';

const REFUSALS: Readonly<Record<Mood, Refusal>> = {
  readonly: { refused: "READONLY You can't write against a read only replica." },
  tryagain: { refused: 'TRYAGAIN Multiple keys request during rehashing of slot', transient: true },
  loading: { refused: 'LOADING Redis is loading the dataset in memory' },
  oom: { refused: 'OOM command not allowed when used memory is above maxmemory' },
};

/** The wall clock of the server at the beginning, in ms. Small, so that tokens can be read. */
const WALL_START = 1_000;

/**
 * The server: holds with a time to live on its wall clock, fencing tokens, channels, sessions. What a command does is
 * what the scripts of the Redis store do.
 */
export class SimServer implements Host {
  /** Called when holds live longer than was said when they were given. */
  onProlonged: (owners: readonly string[]) => void = () => undefined;
  /** Called for each request for a hold: when it was sent, and whether its sender has given it up by now. */
  onAcquire: (claim: Claim, sentAt: number, givenUp: boolean) => void = () => undefined;
  private readonly holds = new Map<string, Hold>();
  private readonly sessions = new Set<Session>();
  private readonly channels = new Map<Session, Set<string>>();
  private lastToken = 0;
  private sessionIds = 0;
  private skewMs = 0;
  private downUntil = 0;
  private stoppedUntil = 0;
  private mood: { readonly kind: Mood; readonly until: number } | undefined;

  constructor(
    private readonly agenda: Agenda,
    private readonly chronicle: Chronicle,
    private readonly mayKill: boolean,
    private readonly quirks: Quirks,
  ) {}

  /** Whether a connection can be made: a stopped server's kernel takes it, a dead one's does not. */
  get accepts(): boolean {
    return this.agenda.now >= this.downUntil;
  }

  nextSessionId(): number {
    return ++this.sessionIds;
  }

  opened(session: Session): void {
    this.sessions.add(session);
    this.channels.set(session, new Set());
  }

  closed(session: Session): void {
    this.sessions.delete(session);
    this.channels.delete(session);
  }

  receive(session: Session, command: Command, sentAt: number, reply: (reply: Reply) => void): void {
    const { now } = this.agenda;
    if (now < this.stoppedUntil) {
      this.agenda.quietly(this.stoppedUntil, () => this.receive(session, command, sentAt, reply));
    } else if (session.openThere) {
      if (command.name === 'acquire') this.onAcquire(command.claim, sentAt, !session.openHere);
      reply(this.refusalOf(command) ?? { value: this.execute(session, command) });
    }
  }

  /** Does not run until `until`, but its sessions live. */
  stop(until: number): void {
    this.stoppedUntil = until;
  }

  restart(downMs: number, keepsData: boolean): void {
    this.downUntil = this.agenda.now + downMs;
    for (const session of [...this.sessions]) session.endByServer();
    if (!keepsData) this.loseData('restarted without its data');
  }

  loseData(why: string): void {
    this.unprotect(why);
    this.sweep();
    for (const [key, { owner }] of this.holds) this.freed(key, owner, 'lost');
    this.holds.clear();
    this.lastToken = 0;
  }

  /** Sets the wall clock. Times to live end by it. */
  jump(ms: number): void {
    this.unprotect(`the server's clock jumped by ${ms} ms`);
    this.sweep();
    this.skewMs += ms;
    if (ms < 0) this.onProlonged([...this.holds.values()].map(({ owner }) => owner));
    this.sweep(this.agenda.now);
  }

  refuse(kind: Mood, until: number): void {
    this.mood = { kind, until };
  }

  /** The hold on a key, if there is one now. */
  ownerOf(key: string): string | undefined {
    return this.find(key)?.owner;
  }

  get owners(): readonly (readonly [key: string, owner: string])[] {
    this.sweep();
    return [...this.holds].map(([key, { owner }]) => [key, owner]);
  }

  /** How many sessions listen to anything. */
  get listeners(): number {
    let count = 0;
    for (const channels of this.channels.values()) if (channels.size > 0) count++;
    return count;
  }

  /** Writes down which holds have run out by now. */
  sweep(at?: number): void {
    for (const key of [...this.holds.keys()]) this.find(key, at);
  }

  private get wall(): number {
    return WALL_START + this.agenda.now + this.skewMs;
  }

  private refusalOf({ name }: Command): Refusal | undefined {
    if (!this.mood || this.agenda.now >= this.mood.until) return undefined;
    const { kind } = this.mood;
    const writes = name === 'acquire' || name === 'extend' || name === 'release' || name === 'forceUnlock';
    if (kind === 'loading') return name === 'ping' || writes ? REFUSALS[kind] : undefined;
    const refuses = kind === 'oom' ? name === 'acquire' : writes;
    return refuses ? REFUSALS[kind] : undefined;
  }

  private execute(session: Session, command: Command): Value {
    switch (command.name) {
      case 'acquire':
        return this.acquire(command.claim);
      case 'extend':
        return command.claims.map((claim) => this.extend(claim));
      case 'release':
        return this.release(command.claim);
      case 'forceUnlock':
        return this.forceUnlock(command.key);
      case 'inspect': {
        const hold = this.find(command.key);
        return hold ? { owner: hold.owner, count: 1, remainingMs: this.leftOf(hold) } : null;
      }
      case 'subscribe':
        for (const channel of command.channels) this.channels.get(session)?.add(channel);
        return true;
      case 'unsubscribe':
        return this.channels.get(session)?.delete(command.channel) ?? false;
      case 'kill':
        return this.kill(command.session);
      case 'identify':
        return session.id;
      case 'ping':
        return true;
    }
  }

  private acquire({ key, owner, leaseMs, fenceBlock, rearms }: Claim): AcquireReply {
    const hold = this.find(key);
    if (hold && hold.owner !== owner) return { status: 'taken', retryInMs: this.leftOf(hold) };
    const before = hold ? this.leftOf(hold) : 0;
    const first = Math.max(this.lastToken + 1, Math.floor(this.wall * 1_000));
    if (fenceBlock > 0) this.lastToken = first + fenceBlock - 1;
    const token = fenceBlock > 0 ? first : undefined;
    this.hold(key, owner, leaseMs, token);
    if (rearms && hold && before > leaseMs && !this.quirks.silentWhenShortened) this.publish(key);
    return { status: 'granted', validForMs: leaseMs, token };
  }

  private extend({ key, owner, leaseMs }: Claim): ExtendReply {
    const hold = this.find(key);
    if (hold?.owner !== owner) {
      if (hold || !this.quirks.extendCreates) return { status: 'lost' };
      this.hold(key, owner, leaseMs, undefined);
      return { status: 'held', validForMs: leaseMs };
    }
    if (this.leftOf(hold) < leaseMs || this.quirks.extendShortens) hold.expiresAt = this.wall + leaseMs;
    return { status: 'held', validForMs: this.leftOf(hold) };
  }

  private release({ key, owner }: Claim): number {
    const hold = this.find(key);
    if (!hold || (hold.owner !== owner && !this.quirks.releaseOfAnyOwner)) return -1;
    const told = this.publish(key);
    this.holds.delete(key);
    this.freed(key, hold.owner, 'released');
    return told;
  }

  private forceUnlock(key: string): boolean {
    const hold = this.find(key);
    if (!hold) return false;
    this.publish(key);
    this.holds.delete(key);
    this.freed(key, hold.owner, 'forced');
    const until = this.agenda.now + this.leftOf(hold);
    const why = `"${key}" was forced open`;
    this.chronicle.add({ type: 'unprotected', at: this.agenda.now, key, until, why });
    return true;
  }

  private kill(id: number): Value {
    if (!this.mayKill) return false;
    for (const session of [...this.sessions]) if (session.id === id) session.endByServer();
    return true;
  }

  private hold(key: string, owner: string, leaseMs: number, token: number | undefined): void {
    this.holds.set(key, { owner, expiresAt: this.wall + leaseMs });
    this.chronicle.add({ type: 'hold', at: this.agenda.now, key, owner, token });
  }

  private publish(key: string): number {
    let told = 0;
    for (const [session, channels] of this.channels) {
      if (!channels.has(key)) continue;
      told++;
      session.push(key);
    }
    return told;
  }

  private find(key: string, freedAt?: number): Hold | undefined {
    const hold = this.holds.get(key);
    if (!hold || this.wall < hold.expiresAt) return hold;
    this.holds.delete(key);
    this.freed(key, hold.owner, 'expired', freedAt ?? hold.expiresAt - WALL_START - this.skewMs);
    return undefined;
  }

  /** As Redis counts it: in whole ms. */
  private leftOf(hold: Hold): number {
    return Math.max(1, Math.floor(hold.expiresAt - this.wall));
  }

  private freed(
    key: string,
    owner: string,
    how: 'released' | 'expired' | 'forced' | 'lost',
    at = this.agenda.now,
  ): void {
    this.chronicle.add({ type: 'free', at, key, owner, how });
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
