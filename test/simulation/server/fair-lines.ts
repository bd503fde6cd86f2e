import type { ClaimOf } from '../../../lib/core/seam/claim.js';
import type { KeyState, QueueEntryReply, ReleaseReply } from '../../../lib/core/seam/reply.js';
import type { SpaceReply } from '../../../lib/stores/memory/kinds/kind-holds.js';

type FairClaim = ClaimOf<'fair'>;

/** What fair locks need of the server: its holds, its wall clock in ms, and its channels. */
export interface FairHost {
  readonly wall: number;
  inspect(key: string): KeyState | null;
  /** Takes the hold, which is free or the owner's. */
  take(claim: FairClaim): SpaceReply;
  /** Ends the owner's hold, or leaves it there for a while. */
  end(claim: FairClaim, keepForMs: number | undefined): void;
  /** True when somebody listens there. */
  announce(channel: string): boolean;
}

/** The channel on which an owner is told that it is the first and the lock is free. */
export const fairChannel = (key: string, owner: string): string => `${key}:${owner}`;

/** Those who wait for one lock, in order, each with the moment at which it counts as dead. */
type Line = Map<string, number>;

/** The lines of fair locks, as the scripts of the Redis store keep them. */
export class FairLines {
  private readonly lines = new Map<string, Line>();

  constructor(private readonly host: FairHost) {}

  acquire(claim: FairClaim): SpaceReply {
    const { finalKey: key, owner, waits } = claim;
    const left = this.leftOf(key);
    const mine = this.holderOf(key) === owner;
    const line = this.lineOf(key);
    const { head, dead } = this.look(line);
    if (mine || (left === undefined && (head === owner || head === undefined))) {
      for (const one of dead) line.delete(one);
      if (head === owner) line.delete(owner);
      this.drop(key);
      if (mine && left !== undefined && left > claim.leaseMs && head !== undefined) this.tell(key, head);
      return this.host.take(claim);
    }
    const { wall } = this.host;
    if (!waits) {
      return {
        status: 'taken',
        retryInMs: Math.ceil(left ?? (head === undefined ? 0 : line.get(head)! - wall)),
      };
    }
    if (dead.length > 0 && head !== undefined && head !== owner) this.tell(key, head);
    for (const one of dead) line.delete(one);
    const till = line.get(owner);
    if (till === undefined || till <= wall) {
      line.delete(owner);
      line.set(owner, wall + (claim.entryTerms?.aliveMs ?? 0));
    }
    return { status: 'queued', ...this.standing(line, owner, left) };
  }

  keep({ finalKey: key, owner, entryTerms }: FairClaim): QueueEntryReply {
    if (this.holderOf(key) === owner) return { status: 'held' };
    const line = this.lineOf(key);
    if (!line.has(owner)) return { status: 'gone' };
    line.set(owner, this.host.wall + (entryTerms?.aliveMs ?? 0));
    const left = this.leftOf(key);
    const { head, dead } = this.look(line);
    if (dead.length > 0 && head !== undefined && head !== owner) this.tell(key, head);
    for (const one of dead) line.delete(one);
    return { status: 'queued', ...this.standing(line, owner, left) };
  }

  release(claim: FairClaim, keepForMs: number | undefined): ReleaseReply {
    const { finalKey: key, owner } = claim;
    const line = this.lineOf(key);
    const wasHeld = this.holderOf(key) === owner;
    const { head, dead } = this.look(line, owner);
    for (const one of dead) line.delete(one);
    const concerns = wasHeld || dead.length > 0 || [...line.keys()][0] === owner;
    line.delete(owner);
    this.drop(key);
    if (wasHeld) this.host.end(claim, keepForMs);
    const othersWaiting = concerns && head !== undefined && this.tell(key, head);
    return { wasHeld, othersWaiting: wasHeld && othersWaiting };
  }

  /** The hold was ended by force. */
  forced(key: string): void {
    const { head } = this.look(this.lineOf(key));
    if (head !== undefined) this.tell(key, head);
    this.drop(key);
  }

  forget(): void {
    this.lines.clear();
  }

  private tell(key: string, owner: string): boolean {
    return this.host.announce(fairChannel(key, owner));
  }

  private lineOf(key: string): Line {
    const line = this.lines.get(key) ?? new Map<string, number>();
    this.lines.set(key, line);
    return line;
  }

  private drop(key: string): void {
    if (this.lines.get(key)?.size === 0) this.lines.delete(key);
  }

  private look(line: Line, leftOut?: string): { head: string | undefined; dead: readonly string[] } {
    const dead: string[] = [];
    for (const [owner, till] of line) {
      if (owner === leftOut) continue;
      if (till > this.host.wall) return { head: owner, dead };
      dead.push(owner);
    }
    return { head: undefined, dead };
  }

  /** Who is not the first has the lock only when that one is gone, too. */
  private standing(line: Line, owner: string, left = 0): { position: number; retryInMs: number } {
    const position = [...line.keys()].indexOf(owner);
    const first = [...line.values()][0]! - this.host.wall;
    return { position, retryInMs: Math.ceil(Math.max(0, left, position > 0 ? first : 0)) };
  }

  private holderOf(key: string): string | undefined {
    return this.host.inspect(key)?.holders[0]?.owner;
  }

  private leftOf(key: string): number | undefined {
    return this.host.inspect(key)?.holders[0]?.remainingMs;
  }
}
