import type { Claim } from '../../../lib/core/seam/claim.js';
import type { Grant } from '../../../lib/core/seam/grant.js';
import type { ExtendReply, KeyState, QueueEntryReply, ReleaseReply } from '../../../lib/core/seam/reply.js';
import type { SpaceReply } from '../../../lib/stores/memory/kinds/kind-holds.js';
import type { MemorySpace, MemorySpaceOptions } from '../../../lib/stores/memory/memory-space.js';
import type { EventOf } from '../../checker/history.js';
import type { Agenda } from '../engine/agenda.js';
import type { Chronicle } from '../engine/chronicle.js';
import { SpaceHistory } from './space-history.js';
import { grantChannel, type GrantMessage } from './grant-message.js';

/** The wall clock of the server at the beginning, in ms. Small, so that tokens can be read. */
const WALL_START = 1_000;

/** Less than anything that matters, and more than what sums of floating point lose, in ms. */
const NOTABLE_MS = 0.000_1;

/** Whoever listens on a channel: the process it belongs to, and how it is told. */
export interface Listener {
  readonly process: object;
  push(key: string, grant?: GrantMessage): void;
}

const lastOf = (token: number | undefined, tokens: number): number | undefined =>
  token === undefined ? undefined : token + tokens - 1;

/** Times as Redis tells them: in whole ms, and at least one. */
const whole = (ms: number): number => Math.max(1, Math.floor(ms));

/**
 * What the server keeps: the memory store's own space, on a wall clock that can be set. Beside it, what was seen in it
 * after each command is compared with what was seen before, and the difference is written into the history.
 */
export class RecordedSpace {
  private readonly history: SpaceHistory;
  private readonly channels = new Map<Listener, Map<string, () => void>>();
  /** For each key who has it, and until when, on the server's wall clock. */
  private readonly seen = new Map<string, Map<string, number>>();
  /** What owners were told of in the command at work. */
  private readonly notified = new Map<string, Grant>();
  /** All keys there ever were. */
  private readonly keys = new Set<string>();
  private skewMs = 0;
  private notifiesNobody = false;

  constructor(
    private readonly agenda: Agenda,
    private readonly chronicle: Chronicle,
    Space: new (options: MemorySpaceOptions) => MemorySpace,
  ) {
    this.history = new SpaceHistory(
      Space,
      () => this.wall,
      (owner, grant, key) => this.notifyGrant(owner, grant, key),
    );
  }

  get owners(): readonly (readonly [key: string, owner: string])[] {
    this.sweep();
    return [...this.seen].flatMap(([key, owners]) =>
      [...owners.keys()].map((owner) => [key, owner] as const),
    );
  }

  acquire(claim: Claim, notSubscribed: boolean): SpaceReply {
    const { finalKey: key, owner, tokens } = claim;
    this.look(key);
    const reply = this.carryOut(
      (space) => space.toTake(claim.kind, key).acquire(claim, notSubscribed),
      owner,
    );
    if (reply.status === 'granted') this.hold(key, owner, reply.token, lastOf(reply.token, tokens));
    this.look(key);
    return reply;
  }

  keep(claim: Claim, notSubscribed: boolean): QueueEntryReply {
    const { finalKey: key } = claim;
    this.look(key);
    const reply = this.carryOut((space) => space.of(claim.kind).keep?.(claim, notSubscribed)) ?? {
      status: 'gone',
    };
    this.look(key);
    return reply;
  }

  extend(claim: Claim): ExtendReply {
    const { finalKey: key, owner } = claim;
    this.look(key);
    const had = this.seen.get(key)?.has(owner);
    const reply = this.carryOut((space) => space.of(claim.kind).extend(claim));
    if (reply.status !== 'held') return reply;
    if (had) this.look(key);
    else this.hold(key, owner, undefined, undefined);
    return { status: 'held', validForMs: whole(reply.validForMs) };
  }

  downgrade(claim: Claim): ExtendReply {
    const { finalKey: key, owner } = claim;
    this.look(key);
    const lost: ExtendReply = { status: 'lost' };
    const reply = this.carryOut((space) => space.of(claim.kind).downgrade?.(claim) ?? lost);
    if (reply.status !== 'held') return reply;
    // Whether it lasts longer than before is another thing.
    this.chronicle.add({ type: 'hold', at: this.agenda.now, key, owner, mode: 'read' });
    this.look(key);
    return { status: 'held', validForMs: whole(reply.validForMs) };
  }

  release(claim: Claim, keepForMs: number | undefined, process: object): ReleaseReply {
    const { finalKey: key } = claim;
    this.look(key);
    this.notifiesNobody = keepForMs === undefined && this.readsConcurrently(claim);
    const wasHeld = this.carryOut((space) => space.of(claim.kind).release(claim, keepForMs));
    this.notifiesNobody = false;
    this.look(key, 'released');
    return { wasHeld, othersWaiting: this.space.othersWatch(key, process) };
  }

  forceUnlock(key: string): boolean {
    return this.end(key, 'forced', `"${key}" was forced open`);
  }

  /** Takes away all that is there and tells nobody: somebody deleted the key. */
  delete(key: string): void {
    this.notifiesNobody = true;
    this.end(key, 'lost', `"${key}" was deleted`);
    this.notifiesNobody = false;
  }

  /** What semaphores and latches have. */
  withNumbers<T>(work: (numbers: MemorySpace['numbers']) => T): T {
    return this.carryOut((space) => work(space.numbers));
  }

  inspect(key: string): KeyState | null {
    this.look(key);
    const state = this.space.inspect(key);
    return (
      state && {
        ...state,
        holders: state.holders.map((one) => ({ ...one, remainingMs: whole(one.remainingMs) })),
      }
    );
  }

  subscribe(listener: Listener, key: string): void {
    const channels = this.channels.get(listener) ?? new Map<string, () => void>();
    this.channels.set(listener, channels);
    if (!channels.has(key)) channels.set(key, this.listen(listener, key));
  }

  unsubscribe(listener: Listener, key: string): boolean {
    const channels = this.channels.get(listener);
    channels?.get(key)?.();
    return channels?.delete(key) ?? false;
  }

  /** The connection of this listener has ended. */
  gone(listener: Listener): void {
    for (const end of this.channels.get(listener)?.values() ?? []) end();
    this.channels.delete(listener);
  }

  loseAll(why: string): void {
    this.unprotect(why);
    this.history.forget();
    this.isAnother(this.seen.keys());
  }

  /** What is kept is as it was so long ago. Returns the owners that it may know: what it has of them is nobody's fault. */
  goBack(ms: number, why: string): string[] {
    this.unprotect(why);
    const { now } = this.agenda;
    const keys = new Set(this.keys);
    const owners = this.history.goBackTo(now - ms);
    this.isAnother(keys);
    return owners;
  }

  /** Sets the wall clock. What it passes has run out at this moment, also when it is set back later. */
  jump(ms: number): void {
    this.unprotect(`the server's clock jumped by ${ms} ms`);
    this.skewMs += ms;
    this.sweep(this.agenda.now);
  }

  /** Writes down which holds have run out by now: at `at`, or when their time was over. */
  sweep(at?: number): void {
    for (const key of [...this.seen.keys()]) this.look(key, 'expired', at);
  }

  get wall(): number {
    return WALL_START + this.agenda.now + this.skewMs;
  }

  private get space(): MemorySpace {
    return this.history.space;
  }

  private carryOut<T>(work: (space: MemorySpace) => T, owner?: string): T {
    return this.history.carryOut(this.agenda.now, work, owner);
  }

  /** It keeps something else from now on. */
  private isAnother(keys: Iterable<string>): void {
    for (const key of [...keys]) this.look(key, 'lost');
    for (const [listener, channels] of this.channels) {
      for (const key of channels.keys()) channels.set(key, this.listen(listener, key));
    }
  }

  /** A message without words. True when somebody listens. */
  announce(channel: string): boolean {
    const listeners = [...this.channels].filter(([, channels]) => channels.has(channel));
    for (const [listener] of listeners) listener.push(channel);
    return listeners.length > 0;
  }

  /** As PUBLISH does: true when somebody listens, wherever the message may get lost then. */
  private notifyGrant(owner: string, grant: Grant, key: string): boolean {
    const channel = grantChannel(owner);
    const listeners = [...this.channels].filter(([, channels]) => channels.has(channel));
    this.notified.set(owner, grant);
    for (const [listener] of listeners) listener.push(channel, { key, owner, grant });
    return listeners.length > 0;
  }

  private listen(listener: Listener, key: string): () => void {
    const notify = (): void => {
      if (!this.notifiesNobody) listener.push(key);
    };
    return this.space.subscribe(key, { process: listener.process, notify });
  }

  private end(key: string, how: 'forced' | 'lost', why: string): boolean {
    this.look(key);
    const { now: at } = this.agenda;
    const until = at + this.longestMs(key);
    const ended = this.carryOut((space) => space.forceUnlock(key));
    this.look(key, how);
    if (ended) this.chronicle.add({ type: 'unprotected', at, key, until, why });
    return ended;
  }

  private hold(key: string, owner: string, token: number | undefined, lastToken: number | undefined): void {
    const { now: at } = this.agenda;
    const state = this.space.inspect(key);
    const leftMs = state?.holders.find((one) => one.owner === owner)?.remainingMs ?? 0;
    const mode = state?.kind === 'read' || state?.kind === 'write' ? state.kind : undefined;
    const owners = this.seen.get(key) ?? new Map<string, number>();
    this.keys.add(key);
    this.seen.set(key, owners.set(owner, this.wall + leftMs));
    this.chronicle.add({ type: 'hold', at, key, owner, token, lastToken, mode, until: at + leftMs });
  }

  /**
   * Writes down what has changed about a key. What is not there any more has ended like `how`: when its time was over,
   * unless `at` says when.
   */
  private look(key: string, how: EventOf<'free'>['how'] = 'expired', at?: number): void {
    const there = new Map(
      this.space.inspect(key)?.holders.map((one) => [one.owner, this.wall + one.remainingMs] as const),
    );
    this.lookForEnds(key, there, how, at);
    const known = this.seen.get(key);
    // Granted while somebody else asked. Its token is told to it, or it asks for another one.
    for (const owner of there.keys()) {
      if (known?.has(owner)) continue;
      const { token, tokens = 0 } = this.notified.get(owner) ?? {};
      this.hold(key, owner, token, lastOf(token, tokens));
    }
    this.notified.clear();
  }

  private lookForEnds(
    key: string,
    there: ReadonlyMap<string, number>,
    how: EventOf<'free'>['how'],
    at: number | undefined,
  ): void {
    const owners = this.seen.get(key);
    if (!owners) return;
    const { now } = this.agenda;
    for (const [owner, before] of owners) {
      const until = there.get(owner);
      if (until === undefined) {
        owners.delete(owner);
        const over = how === 'expired' ? Math.min(now, before - WALL_START - this.skewMs) : now;
        this.chronicle.add({ type: 'free', at: at ?? over, key, owner, how });
      } else if (Math.abs(until - before) > NOTABLE_MS) {
        owners.set(owner, until);
        this.chronicle.add({ type: 'armed', at: now, key, owner, until: now + until - this.wall });
      }
    }
    if (owners.size === 0) this.seen.delete(key);
  }

  private longestMs(key: string): number {
    return Math.max(0, ...[...(this.seen.get(key)?.values() ?? [])].map((until) => until - this.wall));
  }

  /** Whether others read as well: then nobody can come in when this one ends, and the scripts tell nobody. */
  private readsConcurrently({ finalKey, owner }: Claim): boolean {
    const state = this.space.inspect(finalKey);
    if (state?.kind !== 'read' || state.holders.length < 2) return false;
    return state.holders.some((one) => one.owner === owner);
  }

  /** Until the leases of this moment have run out, nobody may rely on them. */
  private unprotect(why: string): void {
    this.sweep();
    const longest = Math.max(0, ...[...this.seen.keys()].map((key) => this.longestMs(key)));
    const { now: at } = this.agenda;
    this.chronicle.add({ type: 'unprotected', at, until: at + longest, why });
  }
}
