import type { ExclusiveClaim } from '../../../../core/seam/claim.js';
import type { ReleaseOptions, Watch, WatchListener } from '../../../../core/seam/lock-store.js';
import { OthersFirst } from '../../../../core/seam/others-first.js';
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
import { COMMIT } from '../commit.js';
import type { AtNode } from '../../quorum/node-store.js';
import { stringsArg, isOtherType, type AtStrings } from '../foreign-holds.js';
import { tokensArg } from '../tokens-argument.js';
import type { RedisKind, RedisLink } from '../redis-link.js';
import { QUEUE_BATCH_PARTS, QUEUE_FORCING, QUEUE_SCRIPTS, RedisQueue } from './redis-queue.js';
import { readAcquire, readExclusiveExtend, readExclusiveRelease, readInspect } from './replies.js';
import * as scripts from './scripts.js';

const ACQUIRE: BatchPart = {
  letter: 'a',
  script: new Script(scripts.EXCLUSIVE_ACQUIRE, [{ word: 'FENCE', keyOnly: true }]),
  keys: 2,
  args: 1,
  shared: 2,
};
const RELEASE: BatchPart = {
  letter: 'r',
  script: new Script(scripts.EXCLUSIVE_RELEASE, [], 'release'),
  keys: 1,
  args: 2,
  shared: 1,
};
const EXTEND = new Script(scripts.EXCLUSIVE_EXTEND, [], 'renewal');
const INSPECT = new Script(scripts.EXCLUSIVE_INSPECT);
const FORCING: BatchPart = {
  letter: 'e',
  script: new Script(scripts.EXCLUSIVE_FORCE_UNLOCK, [], 'woken'),
  keys: 1,
  args: 2,
  shared: 0,
};

/** Asks, and tells what came of it. */
type Requesting<T> = (resolve: (reply: T) => void, reject: (failure: unknown) => void) => void;

const requested =
  <T>(request: () => Promise<T>): Requesting<T> =>
  (resolve, reject) =>
    void request().then(resolve, reject);

/** Scripts of the exclusive lock. */
export const EXCLUSIVE_SCRIPTS: readonly Script[] = [
  ACQUIRE.script,
  RELEASE.script,
  EXTEND,
  FORCING.script,
  INSPECT,
  COMMIT.script,
  ...QUEUE_SCRIPTS,
];
/** The ones of them that can share a request. */
export const EXCLUSIVE_BATCH_PARTS: readonly BatchPart[] = [ACQUIRE, RELEASE, COMMIT, ...QUEUE_BATCH_PARTS];
/** Scripts that end its hold, without a wait queue or with one. */
export const EXCLUSIVE_FORCING: readonly BatchPart[] = [FORCING, QUEUE_FORCING];

/** The exclusive lock in Redis, with the hash of Redisson's RLock. */
export class RedisExclusive implements RedisKind<ExclusiveClaim> {
  readonly inUse = true;

  private readonly queue: RedisQueue;
  /** Without a wait queue. */
  private readonly othersFirst = new OthersFirst();

  constructor(private readonly link: RedisLink) {
    const leave = (claim: ExclusiveClaim, uncertain: StoreFailure | undefined): Promise<void> =>
      this.release(claim, { uncertain }).then(() => undefined);
    this.queue = new RedisQueue(link, leave);
  }

  acquire(claim: ExclusiveClaim & AtNode): Promise<AcquireReply> {
    // The quorum itself lets others go first.
    if (claim.noQueue) return this.sendAcquire(claim);
    return this.inQueue(
      (resolve, reject) => this.queue.acquire(claim, resolve, reject),
      () => this.acquirePlainly(claim),
    );
  }

  release(claim: ExclusiveClaim & AtNode, how: ReleaseOptions = {}): Promise<ReleaseReply> {
    if (claim.noQueue) return this.releasePlainly(claim, how);
    // Before it waits for a connection, because no later attempt may be sent.
    this.queue.forget(claim.owner);
    return this.inQueue(
      (resolve, reject) => this.queue.release(claim, how, resolve, reject),
      () => this.releasePlainly(claim, how),
    );
  }

  async refreshEntries(claims: readonly ExclusiveClaim[]): Promise<readonly QueueEntryReply[]> {
    const replies = await this.link.inBatches(claims, (batch) =>
      this.inQueue(
        requested(() => this.queue.refreshEntries(batch)),
        () => Promise.all(batch.map((claim) => this.giveUp(claim))),
      ),
    );
    const isLeft = (reply: QueueEntryReply): boolean => reply.status === 'failed' && isOtherType(reply.cause);
    return Promise.all(replies.map(async (reply, i) => (isLeft(reply) ? this.giveUp(claims[i]!) : reply)));
  }

  /** An entry whose queue is no wait queue any more is given up: its process requests the key again. */
  private async giveUp(claim: ExclusiveClaim): Promise<QueueEntryReply> {
    if (this.queue.wasGranted(claim.owner)) return { status: 'held' };
    try {
      await this.release(claim);
      return { status: 'gone' };
    } catch (cause) {
      return { status: 'failed', cause };
    }
  }

  /** Uses the wait queue. Without it, or when another type of value is in its place, uses the plain scripts. */
  private inQueue<T>(viaQueue: Requesting<T>, plainly: () => Promise<T>): Promise<T> {
    if (!this.link.topology.hasQueues) return plainly();
    return new Promise((resolve, reject) =>
      viaQueue(resolve, (failure) => {
        if (isOtherType(failure)) plainly().then(resolve, reject);
        else reject(failure);
      }),
    );
  }

  private acquirePlainly(claim: ExclusiveClaim & AtStrings): Promise<AcquireReply> {
    return this.othersFirst.acquire(claim, () => this.sendAcquire(claim));
  }

  private sendAcquire(claim: ExclusiveClaim & AtStrings & AtNode): Promise<AcquireReply> {
    const { finalKey, owner, leaseMs, reacquires } = claim;
    const { commands, keys, publish } = this.link;
    const name = keys.name(finalKey);
    const fenced = claim.tokens > 0;
    const touched = fenced ? [name, keys.fence(name)] : [name];
    const args = [owner, leaseMs, tokensArg(claim)];
    const read = (reply: unknown) => readAcquire(reply, leaseMs, claim.tokens);
    const strings = stringsArg(claim);
    if (reacquires || strings.length > 0) {
      const all = [...args, keys.lockChannel(name), publish, ...strings];
      return commands.run(ACQUIRE.script, touched, all, read, claim);
    }
    const batchKeys = fenced ? undefined : [name, name];
    return commands.runShared({ part: ACQUIRE, keys: touched, batchKeys, args, claim }, read);
  }

  private releasePlainly(claim: ExclusiveClaim & AtNode, how: ReleaseOptions): Promise<ReleaseReply> {
    const { link } = this;
    const { finalKey, owner, noQueue } = claim;
    const { commands, keys, publish } = link;
    const { uncertain, keepForMs, until } = how;
    const own = { owner, until };
    const name = keys.name(finalKey);
    const channel = keys.lockChannel(name);
    const args = [owner, channel, publish];
    const read = (reply: unknown): ReleaseReply => {
      const receivers = readExclusiveRelease(reply);
      if (typeof receivers !== 'number') return receivers;
      return { wasHeld: receivers !== -1, othersWaiting: link.reachesOthers(receivers, channel) };
    };
    const send = () =>
      keepForMs === undefined
        ? commands.runShared({ part: RELEASE, keys: [name], batchKeys: undefined, args, claim: own }, read)
        : commands.run(RELEASE.script, [name], [...args, keepForMs], read, own);
    const reply = link.releaseAfter(uncertain, finalKey, send);
    return noQueue ? reply : this.othersFirst.release(finalKey, reply, link.runtime);
  }

  extendMany(claims: readonly ExclusiveClaim[]): Promise<readonly ExtendReply[]> {
    const { link } = this;
    return link.inBatches(claims, (batch) => {
      const names = batch.map(({ finalKey }) => link.keys.name(finalKey));
      const args = batch.flatMap(({ owner, leaseMs }) => [owner, leaseMs]);
      const read = (reply: unknown): readonly ExtendReply[] => readExclusiveExtend(reply, batch.length);
      return link.commands.run(EXTEND, names, args, read).then((replies) => {
        // A lost hold gets no release.
        for (const [i, { status }] of replies.entries()) {
          if (status === 'lost') this.queue.forget(batch[i]!.owner);
        }
        return replies;
      });
    });
  }

  commit({ finalKey, owner }: ExclusiveClaim, token: number): Promise<boolean> {
    return this.link.commit(finalKey, owner, token);
  }

  unsent(claim: ExclusiveClaim): StoreFailure | undefined {
    return this.link.unsent(claim);
  }

  watch(claim: ExclusiveClaim, listener: WatchListener): Watch {
    return this.queue.watch(claim, listener);
  }

  async inspect(finalKey: string, how: AtStrings = {}): Promise<KeyState | null> {
    const { commands, keys } = this.link;
    const [state, waiting] = await Promise.all([
      commands.run(INSPECT, [keys.name(finalKey)], stringsArg(how), readInspect),
      this.inQueue<readonly string[]>(
        requested(() => this.queue.waiting(finalKey)),
        () => Promise.resolve([]),
      ),
    ]);
    const { kind, holders } = state ?? { kind: 'exclusive', holders: [] };
    return state || waiting.length > 0 ? { ...state, kind, holders, waiting } : null;
  }

  /** Ends the hold, with or without the wait queue. `run` sends the script, perhaps with those of other kinds. */
  forceUnlock(finalKey: string, run: (forcing: PartRun) => Promise<boolean>): Promise<boolean> {
    return this.inQueue(
      requested(() => run(this.queue.forcing(finalKey))),
      () => run(this.forcing(finalKey)),
    );
  }

  forcing(finalKey: string): PartRun {
    const { keys, publish } = this.link;
    const name = keys.name(finalKey);
    return { part: FORCING, keys: [name], args: [keys.lockChannel(name), publish] };
  }
}
