import type { Redis } from 'ioredis';
import { labNow } from '../history/lab-clock.js';
import type { Scribe } from '../history/scribe.js';
import { LONGEST_LEASE_MS } from '../settings.js';
import { PROMOTION } from '../rules/lost-objects.js';
import type { ServerNode } from './server-node.js';

const EVERY_MS = 15;
/** How far spans that go on are written ahead, in ms. */
const WRITTEN_EVERY_MS = 100;
/** How long before a promotion is seen callers may feel that there is no master, and how long after it. */
const FELT = { before: 3_000, after: 2_000 } as const;

interface Seen {
  readonly client: Redis;
  isMaster: boolean | undefined;
  /** When it said so last. */
  at: number;
}

/**
 * Sees when a replica becomes the master, and writes down what follows: from then on it is not certain that it has what
 * the one before it had given, nor, for as long as there are two, that anybody asks the right one. Both end a longest lease
 * later.
 */
export class RoleWatch implements AsyncDisposable {
  /** When a promotion was seen last, or two masters at once. */
  lastChangeAt = -Infinity;
  promotions = 0;
  private readonly seen = new Map<ServerNode, Seen>();
  private readonly writtenAt = new Map<number, number>();
  private readonly timers = new Set<NodeJS.Timeout>();
  private closed = false;

  constructor(
    private readonly groups: readonly (readonly ServerNode[])[],
    private readonly scribe: Scribe,
    /** A replica that takes over has every hold that counted: a promotion excuses nothing. */
    private readonly keepsHolds: boolean,
  ) {
    for (const [group, nodes] of groups.entries()) for (const node of nodes) this.begin(node, group);
  }

  private begin(node: ServerNode, group: number): void {
    const client = node.server.adminClient({ enableOfflineQueue: false, retryStrategy: () => 10 });
    const one: Seen = { client, isMaster: undefined, at: labNow() };
    this.seen.set(node, one);
    const request = async (): Promise<void> => {
      try {
        const from = labNow();
        const [role] = (await client.call('ROLE')) as [string];
        this.reported(node, group, role === 'master', from);
      } catch {
        // It is down, or it was killed while it answered.
      } finally {
        this.look(group);
        this.later(() => void request());
      }
    };
    this.later(() => void request());
  }

  private later(work: () => void): void {
    if (this.closed) return;
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      work();
    }, EVERY_MS);
    this.timers.add(timer);
  }

  private reported(node: ServerNode, group: number, isMaster: boolean, from: number): void {
    const one = this.seen.get(node)!;
    const { isMaster: was, at } = one;
    one.isMaster = isMaster;
    one.at = from;
    if (!isMaster || was !== false) return;
    const now = labNow();
    this.promotions++;
    this.lastChangeAt = now;
    // It was promoted at some moment since it said last that it copies another one.
    this.unprotected(`a promotion in group ${group + 1}`, now - at);
    this.scribe.trouble(PROMOTION, now - FELT.before, now + FELT.after);
  }

  /** One that has not been heard since it was the master may still be one, unless it is dead. */
  private look(group: number): void {
    const masters = this.groups[group]!.filter(
      (node) => node.server.isRunning && this.seen.get(node)!.isMaster,
    );
    if (masters.length < 2) return void this.writtenAt.delete(group);
    const now = labNow();
    this.lastChangeAt = now;
    const written = this.writtenAt.get(group) ?? now;
    if (this.writtenAt.has(group) && now - written < WRITTEN_EVERY_MS) return;
    this.writtenAt.set(group, now);
    this.unprotected(`two masters in group ${group + 1}`, now - written);
    this.scribe.trouble(PROMOTION, written, now + FELT.after);
  }

  private unprotected(why: string, sinceMs: number): void {
    if (this.keepsHolds) this.scribe.note(why);
    else this.scribe.unprotected(why, LONGEST_LEASE_MS, sinceMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.closed = true;
    for (const timer of this.timers) clearTimeout(timer);
    for (const { client } of this.seen.values()) client.disconnect();
  }
}
