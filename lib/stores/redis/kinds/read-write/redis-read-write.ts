import type { ReadClaim, WriteClaim } from '../../../../core/seam/claim.js';
import type { ReleaseOptions, Watch, WatchListener } from '../../../../core/seam/lock-store.js';
import { StoreQueueEntry } from '../../../../core/seam/store-queue-entry.js';
import type {
  AcquireReply,
  ExtendReply,
  KeyState,
  QueueEntryReply,
  ReleaseReply,
} from '../../../../core/seam/reply.js';
import type { StoreFailure } from '../../../../core/seam/store-failure.js';
import { Script } from '../../connection/script.js';
import type { BatchPart, PartRun } from '../../connection/script-batch.js';
import type { AtNode } from '../../quorum/node-store.js';
import { stringsArg, type AtStrings } from '../foreign-holds.js';
import { tokensArg } from '../tokens-argument.js';
import type { RedisKind, RedisLink } from '../redis-link.js';
import { readExtend, readRelease } from '../shared-replies.js';
import {
  readDowngrade,
  readReadAcquire,
  readReadWriteInspect,
  readReadWriteKeep,
  readWriteAcquire,
} from './replies.js';
import * as scripts from './scripts.js';

const ACQUIRE_TO_READ = new Script(scripts.READ_ACQUIRE);
const ACQUIRE_TO_WRITE = new Script(scripts.WRITE_ACQUIRE, [{ word: 'FENCE', keyOnly: true }]);
const KEEP = new Script(scripts.READ_WRITE_KEEP, [], 'renewal');
const RELEASE = new Script(scripts.READ_WRITE_RELEASE, [], 'release');
const EXTEND = new Script(scripts.READ_WRITE_EXTEND, [], 'renewal');
// In the order of renewals: an earlier one is of the write lock, a later one of the read lock.
const DOWNGRADE = new Script(scripts.READ_WRITE_DOWNGRADE, [], 'renewal');
export const READ_WRITE_FORCING: BatchPart = {
  letter: 'w',
  script: new Script(scripts.READ_WRITE_FORCE_UNLOCK, [], 'woken'),
  keys: 3,
  args: 3,
  shared: 0,
};
const INSPECT = new Script(scripts.READ_WRITE_INSPECT);

export const READ_WRITE_SCRIPTS: readonly Script[] = [
  ACQUIRE_TO_READ,
  ACQUIRE_TO_WRITE,
  KEEP,
  RELEASE,
  EXTEND,
  DOWNGRADE,
  READ_WRITE_FORCING.script,
  INSPECT,
];

type ReadWriteClaim = ReadClaim | WriteClaim;

/** Both halves of read-write locks in Redis, with the hash and further keys of Redisson's RReadWriteLock. */
export class RedisReadWrite implements RedisKind<ReadWriteClaim> {
  /** True from the first such lock that a caller wants. */
  inUse = false;

  constructor(private readonly link: RedisLink) {}

  acquire(claim: ReadWriteClaim & AtStrings & AtNode): Promise<AcquireReply> {
    this.inUse = true;
    const { commands, keys, publish } = this.link;
    const { kind, finalKey, owner, leaseMs, tokens } = claim;
    const name = keys.name(finalKey);
    const aliveMs = claim.waits ? (claim.entryTerms?.aliveMs ?? 0) : 0;
    const own = [name, keys.readTimeout(name, owner), keys.readWriteQueue(name)];
    const index = keys.readerIndex(name);
    const args = [owner, leaseMs, aliveMs, keys.readWriteChannel(name), publish];
    const last = kind === 'read' ? keys.readTimeouts(name) : tokensArg(claim);
    args.push(last, ...stringsArg(claim));
    const [script, touched] =
      kind === 'read'
        ? [ACQUIRE_TO_READ, [...own, index]]
        : [ACQUIRE_TO_WRITE, [...own, keys.fence(name), index]];
    const read = (reply: unknown) =>
      kind === 'read' ? readReadAcquire(reply, leaseMs) : readWriteAcquire(reply, leaseMs, tokens);
    const reply = commands.run(script, touched, args, read, claim);
    return reply.then((reply): AcquireReply => {
      if (reply.status !== 'queued') return reply;
      // The store does not notify this entry of a grant: its process asks after each announcement, and at each refresh.
      const entry = new StoreQueueEntry((uncertain) =>
        this.release(claim, { uncertain }).then(() => undefined),
      );
      return { ...reply, entry };
    });
  }

  refreshEntries(claims: readonly (ReadWriteClaim & AtStrings)[]): Promise<readonly QueueEntryReply[]> {
    const { link } = this;
    return link.inBatches(claims, (batch) => {
      const keys = batch.flatMap(({ finalKey, owner }) => {
        const name = link.keys.name(finalKey);
        const beside = [link.keys.readTimeout(name, owner), link.keys.readWriteQueue(name)];
        return [name, ...beside, link.keys.readerIndex(name)];
      });
      const args = batch.flatMap(({ kind, owner, leaseMs, entryTerms }) => {
        return [owner, kind, entryTerms?.aliveMs ?? 0, entryTerms?.provisionalLeaseMs ?? leaseMs];
      });
      args.push(...stringsArg(batch[0]!));
      return link.commands.run(KEEP, keys, args, (reply) => readReadWriteKeep(reply, batch.length));
    });
  }

  release(
    { finalKey, owner }: ReadWriteClaim,
    { uncertain, keepForMs, until }: ReleaseOptions = {},
  ): Promise<ReleaseReply> {
    const { link } = this;
    const { keys, publish } = link;
    const name = keys.name(finalKey);
    const queues = [keys.readWriteQueue(name), keys.queue(name)];
    const touched = [name, keys.readTimeout(name, owner), ...queues, keys.readerIndex(name)];
    const channels = [keys.readWriteChannel(name), publish, keys.readTimeouts(name), keys.lockChannel(name)];
    const args = [owner, ...channels, keepForMs ?? ''];
    // All waiters are in the store's queue, which keeps their order: there is no need to report them.
    const read = (reply: unknown): ReleaseReply => ({
      wasHeld: readRelease(reply) === 1,
      othersWaiting: false,
    });
    return link.releaseAfter(uncertain, finalKey, () =>
      link.commands.run(RELEASE, touched, args, read, { owner, until }),
    );
  }

  extendMany(claims: readonly ReadWriteClaim[]): Promise<readonly ExtendReply[]> {
    const { link } = this;
    return link.inBatches(claims, (batch) => {
      const keys = batch.flatMap(({ finalKey, owner }) => {
        const name = link.keys.name(finalKey);
        return [name, link.keys.readTimeout(name, owner), link.keys.readerIndex(name)];
      });
      const args = batch.flatMap(({ owner, leaseMs }) => [owner, leaseMs]);
      return link.commands.run(EXTEND, keys, args, (reply) => readExtend(reply, batch.length));
    });
  }

  downgrade({ finalKey, owner, leaseMs }: ReadWriteClaim): Promise<ExtendReply> {
    const { commands, keys, publish } = this.link;
    const name = keys.name(finalKey);
    const args = [owner, leaseMs, keys.readWriteChannel(name), publish];
    const touched = [name, keys.readTimeout(name, owner), keys.readerIndex(name)];
    return commands.run(DOWNGRADE, touched, args, readDowngrade);
  }

  commit({ finalKey, owner }: ReadWriteClaim, token: number): Promise<boolean> {
    return this.link.commit(finalKey, `${owner}:write`, token);
  }

  unsent(claim: ReadWriteClaim): StoreFailure | undefined {
    return this.link.unsent(claim);
  }

  watch({ finalKey }: ReadWriteClaim, listener: WatchListener): Watch {
    const { keys, channels } = this.link;
    return channels.watch(keys.readWriteChannel(keys.name(finalKey)), listener);
  }

  inspect(finalKey: string, how: AtStrings = {}): Promise<KeyState | null> {
    const { commands, keys } = this.link;
    const name = keys.name(finalKey);
    const touched = [name, keys.readWriteQueue(name), keys.readerIndex(name)];
    const args = [keys.readTimeouts(name), ...stringsArg(how)];
    return commands.run(INSPECT, touched, args, readReadWriteInspect);
  }

  forcing(finalKey: string): PartRun {
    const { keys, publish } = this.link;
    const name = keys.name(finalKey);
    const args = [keys.readWriteChannel(name), publish, keys.lockChannel(name)];
    return { part: READ_WRITE_FORCING, keys: [name, keys.queue(name), keys.readerIndex(name)], args };
  }
}
