import type { Claim } from '../../../lib/core/seam/claim.js';
import type { AcquireReply, ExtendReply, KeyState, ReleaseReply } from '../../../lib/core/seam/reply.js';
import type { MemorySpace, MemorySpaceOptions } from '../../../lib/stores/memory/memory-space.js';
import type { EventOf } from '../../checker/history.js';
import type { Agenda } from '../engine/agenda.js';
import type { Chronicle } from '../engine/chronicle.js';

/** The wall clock of the server at the beginning, in ms. Small, so that tokens can be read. */
const WALL_START = 1_000;

/** Less than anything that matters, and more than what sums of floating point lose, in ms. */
const NOTABLE_MS = 0.000_1;

/** Whoever listens on a channel: the process it belongs to, and how it is told. */
export interface Listener {
  readonly process: object;
  push(key: string): void;
}

/** Times as Redis tells them: in whole ms, and at least one. */
const whole = (ms: number): number => Math.max(1, Math.floor(ms));

/**
 * What the server keeps: the memory store's own space, on a wall clock that can be set. Beside it, what was seen in it
 * after each command is compared with what was seen before, and the difference is written into the history.
 */
export class RecordedSpace {
  private space: MemorySpace;
  private readonly channels = new Map<Listener, Map<string, () => void>>();
  /** For each key who has it, and until when, on the server's wall clock. */
  private readonly seen = new Map<string, Map<string, number>>();
  private skewMs = 0;
  private tellsNobody = false;

  constructor(
    private readonly agenda: Agenda,
    private readonly chronicle: Chronicle,
    private readonly Space: new (options: MemorySpaceOptions) => MemorySpace,
  ) {
    this.space = this.newSpace();
  }

  get owners(): readonly (readonly [key: string, owner: string])[] {
    this.sweep();
    return [...this.seen].flatMap(([key, owners]) =>
      [...owners.keys()].map((owner) => [key, owner] as const),
    );
  }

  acquire(claim: Claim): AcquireReply {
    const { finalKey: key, owner, tokens } = claim;
    this.look(key);
    const reply = this.space.toTake(claim.kind, key).acquire(claim);
    if (reply.status !== 'granted') return reply;
    this.hold(key, owner, reply.token, reply.token === undefined ? undefined : reply.token + tokens - 1);
    return reply;
  }

  extend(claim: Claim): ExtendReply {
    const { finalKey: key, owner } = claim;
    this.look(key);
    const had = this.seen.get(key)?.has(owner);
    const reply = this.space.of(claim.kind).extend(claim);
    if (reply.status !== 'held') return reply;
    if (had) this.look(key);
    else this.hold(key, owner, undefined, undefined);
    return { status: 'held', validForMs: whole(reply.validForMs) };
  }

  release(claim: Claim, keepForMs: number | undefined, process: object): ReleaseReply {
    const { finalKey: key } = claim;
    this.look(key);
    const wasHeld = this.space.of(claim.kind).release(claim, keepForMs);
    this.look(key, 'released');
    return { wasHeld, othersWaiting: this.space.othersWatch(key, process) };
  }

  forceUnlock(key: string): boolean {
    return this.end(key, 'forced', `"${key}" was forced open`);
  }

  /** Takes away all that is there and tells nobody: somebody deleted the key. */
  delete(key: string): void {
    this.tellsNobody = true;
    this.end(key, 'lost', `"${key}" was deleted`);
    this.tellsNobody = false;
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
    this.space = this.newSpace();
    for (const key of [...this.seen.keys()]) this.look(key, 'lost');
    for (const [listener, channels] of this.channels) {
      for (const key of channels.keys()) channels.set(key, this.listen(listener, key));
    }
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

  private get wall(): number {
    return WALL_START + this.agenda.now + this.skewMs;
  }

  private newSpace(): MemorySpace {
    return new this.Space({ now: () => this.wall, wallClockMicros: () => this.wall * 1_000 });
  }

  private listen(listener: Listener, key: string): () => void {
    const notify = (): void => {
      if (!this.tellsNobody) listener.push(key);
    };
    return this.space.subscribe(key, { process: listener.process, notify });
  }

  private end(key: string, how: 'forced' | 'lost', why: string): boolean {
    this.look(key);
    const { now: at } = this.agenda;
    const until = at + this.longestMs(key);
    const ended = this.space.forceUnlock(key);
    this.look(key, how);
    if (ended) this.chronicle.add({ type: 'unprotected', at, key, until, why });
    return ended;
  }

  private hold(key: string, owner: string, token: number | undefined, lastToken: number | undefined): void {
    const { now: at } = this.agenda;
    const leftMs = this.space.inspect(key)?.holders.find((one) => one.owner === owner)?.remainingMs ?? 0;
    const owners = this.seen.get(key) ?? new Map<string, number>();
    this.seen.set(key, owners.set(owner, this.wall + leftMs));
    this.chronicle.add({ type: 'hold', at, key, owner, token, lastToken, until: at + leftMs });
  }

  /**
   * Writes down what has changed about a key. What is not there any more has ended like `how`: when its time was over,
   * unless `at` says when.
   */
  private look(key: string, how: EventOf<'free'>['how'] = 'expired', at?: number): void {
    const owners = this.seen.get(key);
    if (!owners) return;
    const { now } = this.agenda;
    const there = new Map(
      this.space.inspect(key)?.holders.map((one) => [one.owner, this.wall + one.remainingMs] as const),
    );
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

  /** Until the leases of this moment have run out, nobody may rely on them. */
  private unprotect(why: string): void {
    this.sweep();
    const longest = Math.max(0, ...[...this.seen.keys()].map((key) => this.longestMs(key)));
    const { now: at } = this.agenda;
    this.chronicle.add({ type: 'unprotected', at, until: at + longest, why });
  }
}
