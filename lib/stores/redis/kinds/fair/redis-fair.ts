import { CompactingMap } from '../../../../core/util/compacting.js';
import type { FairClaim } from '../../../../core/seam/claim.js';
import type { ReleaseOptions, Watch, WatchListener } from '../../../../core/seam/lock-store.js';
import { StoreQueueEntry } from '../../../../core/seam/store-queue-entry.js';
import type {
  AcquireReply,
  ExtendReply,
  KeyState,
  QueueEntryReply,
  Queued,
  ReleaseReply,
} from '../../../../core/seam/reply.js';
import type { StoreFailure } from '../../../../core/seam/store-failure.js';
import { Script } from '../../connection/script.js';
import { readExclusiveExtend, readExclusiveRelease, readInspect } from '../exclusive/replies.js';
import { EXCLUSIVE_EXTEND, EXCLUSIVE_INSPECT } from '../exclusive/scripts.js';
import type { BatchPart, PartRun } from '../../connection/script-batch.js';
import { tokensRequested } from '../exclusive/entry-text.js';
import { stringsArg, type AtStrings } from '../foreign-holds.js';
import type { RedisKind, RedisLink } from '../redis-link.js';
import { readOwners } from '../shared-replies.js';
import { readFairAcquire, readFairEntries } from './replies.js';
import * as scripts from './scripts.js';

const ACQUIRE = new Script(scripts.FAIR_ACQUIRE, [{ word: 'FENCE', keyOnly: true }]);
const KEEP = new Script(scripts.FAIR_KEEP, [], 'renewal');
const WAITING = new Script(scripts.FAIR_WAITING);
/** Script that ends a hold when other owners are queued. */
export const FAIR_FORCING: BatchPart = {
  letter: 'f',
  script: new Script(scripts.FAIR_FORCE_UNLOCK, [], 'woken'),
  keys: 3,
  args: 2,
  shared: 0,
};
/** Releases of one tick share requests. */
export const FAIR_RELEASING: BatchPart = {
  letter: 'l',
  script: new Script(scripts.FAIR_RELEASE, [], 'release'),
  keys: 3,
  args: 2,
  shared: 2,
};
// A hold has the form of an exclusive one.
const EXTEND = new Script(EXCLUSIVE_EXTEND, [], 'renewal');
const INSPECT = new Script(EXCLUSIVE_INSPECT);

/** Scripts of the fair lock, beside the ones that it shares with the exclusive lock. */
export const FAIR_SCRIPTS: readonly Script[] = [
  ACQUIRE,
  FAIR_RELEASING.script,
  KEEP,
  FAIR_FORCING.script,
  WAITING,
];

/** What this process knows of one of its queue entries. */
interface KnownEntry {
  /** Time of the last refresh, in ms. */
  readonly keptAt: number;
  readonly position: number;
}

/** The fair lock in Redis, with the hash, list, sorted set and channels of Redisson's RFairLock. */
export class RedisFair implements RedisKind<FairClaim> {
  /** True from the first fair lock that a caller wants. */
  inUse = false;
  /** The queued owners of this process. */
  private readonly entries = new CompactingMap<string, KnownEntry>();

  constructor(private readonly link: RedisLink) {}

  async acquire(claim: FairClaim & AtStrings): Promise<AcquireReply> {
    this.inUse = true;
    const { finalKey, owner, leaseMs, tokens, waits, entryTerms } = claim;
    const { commands, keys, publish, runtime } = this.link;
    const name = keys.name(finalKey);
    const touched = [...this.names(finalKey), ...(tokens > 0 ? [keys.fence(name)] : [])];
    const requested = tokensRequested(claim, tokens);
    const aliveMs = waits ? (entryTerms?.aliveMs ?? 0) : 0;
    const terms = [owner, leaseMs, requested, waits ? 1 : 0, aliveMs];
    const args = [...terms, keys.lockChannel(name), publish, ...stringsArg(claim)];
    const entry = waits ? new StoreQueueEntry((uncertain) => this.leave(claim, uncertain)) : undefined;
    for (;;) {
      // Measured before sending, so that the age of the entry is never underestimated.
      const sentAt = runtime.now();
      const read = (raw: unknown) => readFairAcquire(raw, claim, entry);
      const reply = await commands.run(ACQUIRE, touched, args, read, claim);
      // Each request clears some of the dead entries at the front.
      if (reply.status === 'again') continue;
      if (reply.status === 'queued') return { ...reply, position: this.recordEntry(owner, reply, sentAt) };
      this.entries.delete(owner);
      return reply;
    }
  }

  /** Records the store's reply for a queue entry. For an entry far back the store does not tell the exact position. */
  private recordEntry(
    owner: string,
    { position }: Pick<Queued, 'position'>,
    sentAt: number,
    isKept = false,
  ): number {
    const before = this.entries.get(owner);
    const keptAt = before && !isKept ? before.keptAt : sentAt;
    const known = position < scripts.MAX_LOOKED_AT ? position : Math.max(position, before?.position ?? 0);
    this.entries.set(owner, { keptAt, position: known });
    return known;
  }

  release(
    { finalKey, owner }: FairClaim,
    { uncertain, keepForMs, until }: ReleaseOptions = {},
  ): Promise<ReleaseReply> {
    this.entries.delete(owner);
    const { link } = this;
    const channel = link.keys.lockChannel(link.keys.name(finalKey));
    const run = {
      part: FAIR_RELEASING,
      keys: this.names(finalKey),
      args: [owner, channel, link.publish, keepForMs ?? ''],
      claim: { owner, until },
    };
    const read = (reply: unknown): ReleaseReply => {
      const receivers = readExclusiveRelease(reply);
      if (typeof receivers !== 'number') return receivers;
      return { wasHeld: receivers !== -1, othersWaiting: receivers > 0 };
    };
    return link.releaseAfter(uncertain, finalKey, () => link.commands.runShared(run, read));
  }

  private async leave(claim: FairClaim, uncertain: ReleaseOptions['uncertain']): Promise<void> {
    await this.release(claim, { uncertain });
  }

  extendMany(claims: readonly FairClaim[]): Promise<readonly ExtendReply[]> {
    const { link } = this;
    return link.inBatches(claims, (batch) => {
      const names = batch.map(({ finalKey }) => link.keys.name(finalKey));
      const args = batch.flatMap(({ owner, leaseMs }) => [owner, leaseMs]);
      return link.commands.run(EXTEND, names, args, (reply) => readExclusiveExtend(reply, batch.length));
    });
  }

  refreshEntries(claims: readonly (FairClaim & AtStrings)[]): Promise<readonly QueueEntryReply[]> {
    const { link } = this;
    return link.inBatches(claims, async (batch) => {
      const sentAt = link.runtime.now();
      const names = batch.flatMap(({ finalKey }) => this.names(finalKey));
      const args = batch.flatMap(({ finalKey, owner, entryTerms }) => {
        const passedMs = Math.round(sentAt - (this.entries.get(owner)?.keptAt ?? sentAt));
        return [owner, entryTerms?.aliveMs ?? 0, passedMs, link.keys.lockChannel(link.keys.name(finalKey))];
      });
      args.push(...stringsArg(batch[0]!));
      const replies = await link.commands.run(KEEP, names, [link.publish, ...args], (reply) =>
        readFairEntries(reply, batch.length),
      );
      return replies.map((reply, i) => {
        const { owner } = batch[i]!;
        if (reply.status === 'gone') this.entries.delete(owner);
        if (reply.status !== 'queued' || !this.entries.has(owner)) return reply;
        return { ...reply, position: this.recordEntry(owner, reply, sentAt, true) };
      });
    });
  }

  unsent(claim: FairClaim): StoreFailure | undefined {
    return this.link.unsent(claim);
  }

  /** Listens on the waiter's own channel. An owner without a queue entry listens on the channel of exclusive locks. */
  watch({ finalKey, owner, waits }: FairClaim, listener: WatchListener): Watch {
    const { keys, channels } = this.link;
    const channel = keys.lockChannel(keys.name(finalKey));
    return channels.watch(waits ? `${channel}:${owner}` : channel, listener);
  }

  /**
   * Resolves with the state of a fair lock. Null also for a read-write lock, and for a hold that looks like an
   * exclusive one: Java or an exclusive caller has it, and no owner is queued.
   */
  async inspect(finalKey: string, how: AtStrings = {}): Promise<KeyState | null> {
    const { commands } = this.link;
    const [hold, queue, timeouts] = this.names(finalKey);
    const [state, waiting] = await Promise.all([
      commands.run(INSPECT, [hold], stringsArg(how), readInspect),
      commands.run(WAITING, [queue, timeouts], [], readOwners),
    ]);
    if (!state) return waiting.length > 0 ? { kind: 'fair', holders: [], waiting } : null;
    if (state.kind === 'read' || state.kind === 'write') return null;
    if (state.kind !== 'fair' && waiting.length === 0) return null;
    return { ...state, kind: state.heldAs ? state.kind : 'fair', waiting };
  }

  forcing(finalKey: string): PartRun {
    const { keys, publish } = this.link;
    const channel = keys.lockChannel(keys.name(finalKey));
    return { part: FAIR_FORCING, keys: this.names(finalKey), args: [channel, publish] };
  }

  private names(finalKey: string): [hold: string, queue: string, timeouts: string] {
    const { keys } = this.link;
    const hold = keys.name(finalKey);
    return [hold, keys.fairQueue(hold), keys.fairTimeouts(hold)];
  }
}
