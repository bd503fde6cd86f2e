import type { Claim } from '../../../lib/core/seam/claim.js';
import type { Agenda } from '../engine/agenda.js';
import type { Chronicle } from '../engine/chronicle.js';
import type { Host, Session } from '../network/session.js';
import type { Quirks } from '../quirks.js';
import type { Command, Refusal, Reply, Value } from './commands.js';
import { Holds } from './holds.js';

/** What the server answers to writes for a while, instead of doing them. */
export type Mood = 'readonly' | 'tryagain' | 'loading' | 'oom';

const REFUSALS: Readonly<Record<Mood, Refusal>> = {
  readonly: { refused: "READONLY You can't write against a read only replica." },
  tryagain: { refused: 'TRYAGAIN Multiple keys request during rehashing of slot', transient: true },
  loading: { refused: 'LOADING Redis is loading the dataset in memory' },
  oom: { refused: 'OOM command not allowed when used memory is above maxmemory' },
};

const claimsOf = (command: Command): readonly Claim[] => {
  if (command.name === 'extend') return command.claims;
  return command.name === 'acquire' ? [command.claim] : [];
};

/** The server: sessions, channels, and what becomes of a command. It can stop, restart and refuse. */
export class SimServer implements Host {
  /** Called when holds live longer than was said when they were given, or are to outlive their use. */
  onProlonged: (owners: readonly string[]) => void = () => undefined;
  /** Called for each request that can give or lengthen a hold; `givenUp`: its sender does not wait for it any more. */
  onClaim: (claim: Claim, sentAt: number, givenUp: boolean) => void = () => undefined;
  /** Called for each request that leaves a hold there for a least time. */
  onKept: (claim: Claim, forMs: number) => void = () => undefined;
  private readonly holds: Holds;
  private readonly sessions = new Set<Session>();
  private readonly channels = new Map<Session, Set<string>>();
  private sessionIds = 0;
  private downUntil = 0;
  private stoppedUntil = 0;
  private mood: { readonly kind: Mood; readonly until: number } | undefined;

  constructor(
    private readonly agenda: Agenda,
    chronicle: Chronicle,
    private readonly mayKill: boolean,
    quirks: Quirks,
  ) {
    this.holds = new Holds(agenda, chronicle, quirks, (key) => this.publish(key));
  }

  /** Whether a connection can be made: a stopped server's kernel takes it, a dead one's does not. */
  get accepts(): boolean {
    return this.agenda.now >= this.downUntil;
  }

  get owners(): readonly (readonly [key: string, owner: string])[] {
    return this.holds.owners;
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
      for (const claim of claimsOf(command)) this.onClaim(claim, sentAt, !session.openHere);
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
    if (!keepsData) this.loseData('the server comes back without its data');
  }

  loseData(why: string): void {
    this.holds.loseAll(why);
  }

  deleteKey(key: string): void {
    this.holds.delete(key);
  }

  /** Sets the wall clock. Times to live end by it. */
  jump(ms: number): void {
    this.holds.jump(ms);
    if (ms < 0) this.onProlonged(this.owners.map(([, owner]) => owner));
  }

  refuse(kind: Mood, until: number): void {
    this.mood = { kind, until };
  }

  /** Writes down which holds have run out by now. */
  sweep(): void {
    this.holds.sweep();
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
        return this.holds.acquire(command.claim);
      case 'extend':
        return command.claims.map((claim) => this.holds.extend(claim));
      case 'release':
        if (command.keepForMs !== undefined) this.onKept(command.claim, command.keepForMs);
        return this.holds.release(command.claim, command.keepForMs);
      case 'forceUnlock':
        return this.holds.forceUnlock(command.key);
      case 'inspect':
        return this.holds.inspect(command.key);
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

  private kill(id: number): boolean {
    if (!this.mayKill) return false;
    for (const session of [...this.sessions]) if (session.id === id) session.endByServer();
    return true;
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
}
