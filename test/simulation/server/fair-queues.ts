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
type Queue = Map<string, number>;

/** The lines of fair locks, as the scripts of the Redis store keep them. */
export class FairQueues {
  private readonly queues = new Map<string, Queue>();

  constructor(private readonly host: FairHost) {}

  acquire(claim: FairClaim): SpaceReply {
    const { finalKey: key, owner, waits } = claim;
    const left = this.leftOf(key);
    const mine = this.holderOf(key) === owner;
    const queue = this.queueOf(key);
    const { head, dead } = this.look(queue);
    if (mine || (left === undefined && (head === owner || head === undefined))) {
      for (const one of dead) queue.delete(one);
      if (head === owner) queue.delete(owner);
      this.drop(key);
      if (mine && left !== undefined && left > claim.leaseMs && head !== undefined) this.notify(key, head);
      return this.host.take(claim);
    }
    const { wall } = this.host;
    if (!waits) {
      return {
        status: 'taken',
        retryInMs: Math.ceil(left ?? (head === undefined ? 0 : queue.get(head)! - wall)),
      };
    }
    if (dead.length > 0 && head !== undefined && head !== owner) this.notify(key, head);
    for (const one of dead) queue.delete(one);
    const till = queue.get(owner);
    if (till === undefined || till <= wall) {
      queue.delete(owner);
      queue.set(owner, wall + (claim.entryTerms?.aliveMs ?? 0));
    }
    return { status: 'queued', ...this.positionOf(queue, owner, left) };
  }

  keep({ finalKey: key, owner, entryTerms }: FairClaim): QueueEntryReply {
    if (this.holderOf(key) === owner) return { status: 'held' };
    const queue = this.queueOf(key);
    if (!queue.has(owner)) return { status: 'gone' };
    queue.set(owner, this.host.wall + (entryTerms?.aliveMs ?? 0));
    const left = this.leftOf(key);
    const { head, dead } = this.look(queue);
    if (dead.length > 0 && head !== undefined && head !== owner) this.notify(key, head);
    for (const one of dead) queue.delete(one);
    return { status: 'queued', ...this.positionOf(queue, owner, left) };
  }

  release(claim: FairClaim, keepForMs: number | undefined): ReleaseReply {
    const { finalKey: key, owner } = claim;
    const queue = this.queueOf(key);
    const wasHeld = this.holderOf(key) === owner;
    const { head, dead } = this.look(queue, owner);
    for (const one of dead) queue.delete(one);
    const concerns = wasHeld || dead.length > 0 || [...queue.keys()][0] === owner;
    queue.delete(owner);
    this.drop(key);
    if (wasHeld) this.host.end(claim, keepForMs);
    const othersWaiting = concerns && head !== undefined && this.notify(key, head);
    return { wasHeld, othersWaiting: wasHeld && othersWaiting };
  }

  /** The hold was ended by force. */
  forced(key: string): void {
    const { head } = this.look(this.queueOf(key));
    if (head !== undefined) this.notify(key, head);
    this.drop(key);
  }

  forget(): void {
    this.queues.clear();
  }

  private notify(key: string, owner: string): boolean {
    return this.host.announce(fairChannel(key, owner));
  }

  private queueOf(key: string): Queue {
    const queue = this.queues.get(key) ?? new Map<string, number>();
    this.queues.set(key, queue);
    return queue;
  }

  private drop(key: string): void {
    if (this.queues.get(key)?.size === 0) this.queues.delete(key);
  }

  private look(queue: Queue, leftOut?: string): { head: string | undefined; dead: readonly string[] } {
    const dead: string[] = [];
    for (const [owner, till] of queue) {
      if (owner === leftOut) continue;
      if (till > this.host.wall) return { head: owner, dead };
      dead.push(owner);
    }
    return { head: undefined, dead };
  }

  /** Who is not the first has the lock only when that one is gone, too. */
  private positionOf(queue: Queue, owner: string, left = 0): { position: number; retryInMs: number } {
    const position = [...queue.keys()].indexOf(owner);
    const first = [...queue.values()][0]! - this.host.wall;
    return { position, retryInMs: Math.ceil(Math.max(0, left, position > 0 ? first : 0)) };
  }

  private holderOf(key: string): string | undefined {
    return this.host.inspect(key)?.holders[0]?.owner;
  }

  private leftOf(key: string): number | undefined {
    return this.host.inspect(key)?.holders[0]?.remainingMs;
  }
}
