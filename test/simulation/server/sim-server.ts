import type { Claim } from '../../../lib/core/seam/claim.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import type { Core } from '../core-api.js';
import type { Agenda } from '../engine/agenda.js';
import type { Chronicle } from '../engine/chronicle.js';
import type { Host, Session } from '../network/session.js';
import type { Command, Refusal, Reply, Value } from './commands.js';
import { FairQueues } from './fair-queues.js';
import { RecordedSpace } from './recorded-space.js';
import { useNumber } from './use-number.js';

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
  // A place that is kept may be granted by that.
  if (command.name === 'keep') return command.claims;
  return command.name === 'acquire' || command.name === 'downgrade' ? [command.claim] : [];
};

/** The server: sessions, channels, and what becomes of a command. It can stop, restart and refuse. */
export class SimServer implements Host {
  /** Called when holds live longer than was said when they were given, or are to outlive their use. */
  onProlonged: (owners: readonly string[]) => void = () => undefined;
  /** Called for each request that can give or lengthen a hold; `givenUp`: its sender does not wait for it any more. */
  onClaim: (claim: Claim, sentAt: number, givenUp: boolean) => void = () => undefined;
  /** Called for each request that leaves a hold there for a least time. */
  onKept: (claim: Claim, forMs: number) => void = () => undefined;
  private readonly space: RecordedSpace;
  private readonly fair: FairQueues;
  private readonly sessions = new Set<Session>();
  private sessionIds = 0;
  /** How many servers there were: what one of them says of its line says nothing of another's. */
  private run = 0;
  private downUntil = 0;
  private stoppedUntil = 0;
  private mood: { readonly kind: Mood; readonly until: number } | undefined;

  constructor(
    private readonly agenda: Agenda,
    chronicle: Chronicle,
    private readonly mayKill: boolean,
    core: Core,
  ) {
    const space = new RecordedSpace(agenda, chronicle, core.MemorySpace);
    this.space = space;
    this.fair = new FairQueues({
      get wall() {
        return space.wall;
      },
      inspect: (key) => space.inspect(key),
      take: (claim) => space.acquire({ ...claim, waits: false, entryTerms: undefined }, false),
      end: (claim, keepForMs) => void space.release(claim, keepForMs, this),
      announce: (channel) => space.announce(channel),
    });
  }

  /** Whether a connection can be made: a stopped server's kernel takes it, a dead one's does not. */
  get accepts(): boolean {
    return this.agenda.now >= this.downUntil;
  }

  get owners(): readonly (readonly [key: string, owner: string])[] {
    return this.space.owners;
  }

  nextSessionId(): number {
    return ++this.sessionIds;
  }

  opened(session: Session): void {
    this.sessions.add(session);
    session.run = this.run;
  }

  closed(session: Session): void {
    this.sessions.delete(session);
    this.space.gone(session);
  }

  receive(session: Session, command: Command, sentAt: number, reply: (reply: Reply) => void): void {
    const { now } = this.agenda;
    if (now < this.stoppedUntil) {
      this.agenda.quietly(this.stoppedUntil, () => this.receive(session, command, sentAt, reply));
    } else if (session.openThere) {
      for (const claim of claimsOf(command)) this.onClaim(claim, sentAt, !session.openHere);
      reply(this.refusalOf(command) ?? this.reply(session, command));
    }
  }

  /** Does not run until `until`, but its sessions live. */
  stop(until: number): void {
    this.stoppedUntil = until;
  }

  restart(downMs: number, keepsData: boolean): void {
    this.goDown(downMs);
    if (!keepsData) this.loseData('the server comes back without its data');
  }

  /** A replica takes over that knows nothing of the last so many ms. */
  failOver(downMs: number, behindMs: number): void {
    this.goDown(downMs);
    this.fair.forget();
    this.onProlonged(this.space.goBack(behindMs, `a replica takes over that is ${behindMs} ms behind`));
  }

  loseData(why: string): void {
    this.fair.forget();
    this.space.loseAll(why);
  }

  deleteKey(key: string): void {
    this.space.delete(key);
  }

  /** Sets the wall clock. Times to live end by it. */
  jump(ms: number): void {
    this.space.jump(ms);
    if (ms < 0) this.onProlonged(this.owners.map(([, owner]) => owner));
  }

  refuse(kind: Mood, until: number): void {
    this.mood = { kind, until };
  }

  /** Writes down which holds have run out by now. */
  sweep(): void {
    this.space.sweep();
  }

  private goDown(forMs: number): void {
    this.downUntil = this.agenda.now + forMs;
    this.run++;
    for (const session of [...this.sessions]) session.endByServer();
  }

  private refusalOf(command: Command): Refusal | undefined {
    const { name } = command;
    if (!this.mood || this.agenda.now >= this.mood.until) return undefined;
    const { kind } = this.mood;
    const writes =
      name === 'acquire' ||
      name === 'keep' ||
      name === 'extend' ||
      name === 'downgrade' ||
      name === 'release' ||
      name === 'forceUnlock' ||
      (name === 'number' && command.what !== 'look');
    if (kind === 'loading') return name === 'ping' || writes ? REFUSALS[kind] : undefined;
    const makesNew =
      name === 'acquire' || name === 'downgrade' || (name === 'number' && command.what === 'set');
    const refuses = kind === 'oom' ? makesNew : writes;
    return refuses ? REFUSALS[kind] : undefined;
  }

  private reply(session: Session, command: Command): Reply {
    try {
      return { value: this.execute(session, command) };
    } catch (failure) {
      if (!(failure instanceof StoreFailure)) throw failure;
      return { refused: failure.message, keyOnly: failure.keyOnly };
    }
  }

  private execute(session: Session, command: Command): Value {
    switch (command.name) {
      case 'acquire':
        if (command.claim.kind === 'fair') return this.fair.acquire(command.claim);
        return this.space.acquire(command.claim, command.notSubscribed);
      case 'keep':
        return command.claims.map((claim) =>
          claim.kind === 'fair' ? this.fair.keep(claim) : this.space.keep(claim, command.notSubscribed),
        );
      case 'extend':
        return command.claims.map((claim) => this.space.extend(claim));
      case 'downgrade':
        return this.space.downgrade(command.claim);
      case 'release':
        if (command.keepForMs !== undefined) this.onKept(command.claim, command.keepForMs);
        if (command.claim.kind === 'fair') return this.fair.release(command.claim, command.keepForMs);
        return this.space.release(command.claim, command.keepForMs, session.process);
      case 'forceUnlock':
        return this.forceUnlock(command.key);
      case 'number':
        return this.space.withNumbers((numbers) => useNumber(numbers, command));
      case 'inspect':
        return this.space.inspect(command.key);
      case 'subscribe':
        for (const channel of command.channels) this.space.subscribe(session, channel);
        return true;
      case 'unsubscribe':
        return this.space.unsubscribe(session, command.channel);
      case 'kill':
        return this.kill(command.session);
      case 'identify':
        return session.id;
      case 'ping':
        return true;
    }
  }

  private forceUnlock(key: string): boolean {
    const ended = this.space.forceUnlock(key);
    if (ended) this.fair.forced(key);
    return ended;
  }

  private kill(id: number): boolean {
    if (!this.mayKill) return false;
    for (const session of [...this.sessions]) if (session.id === id) session.endByServer();
    return true;
  }
}
