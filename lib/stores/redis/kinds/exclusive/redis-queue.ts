import { CompactingMap } from '../../../../core/util/compacting.js';
import type { ExclusiveClaim } from '../../../../core/seam/claim.js';
import type { ReleaseOptions, Watch, WatchListener } from '../../../../core/seam/lock-store.js';
import { StoreQueueEntry } from '../../../../core/seam/store-queue-entry.js';
import type { AcquireReply, QueueEntryReply, ReleaseReply } from '../../../../core/seam/reply.js';
import type { StoreFailure } from '../../../../core/seam/store-failure.js';
import { Script } from '../../connection/script.js';
import type { BatchPart, PartRun } from '../../connection/script-batch.js';
import { stringsArg, type AtStrings } from '../foreign-holds.js';
import type { RedisLink } from '../redis-link.js';
import { readOwners } from '../shared-replies.js';
import { EarlyGrants } from './early-grants.js';
import { EntryText, tokensRequested } from './entry-text.js';
import { readQueueAcquire, readQueueKeep, readQueueRelease, type QueueAcquire } from './replies.js';
import * as scripts from './queue-scripts.js';
import { readGrantMessage, type GrantMessage } from './grant-message.js';
import type { GrantSubscription } from './grant-subscription.js';
import { GrantSubscriptions } from './grant-subscriptions.js';

const ACQUIRE: BatchPart = {
  letter: 'A',
  script: new Script(scripts.QUEUE_ACQUIRE, [{ word: 'FENCE', keyOnly: true }]),
  keys: 3,
  args: 1,
  shared: 3,
};
const RELEASE: BatchPart = {
  letter: 'R',
  script: new Script(scripts.QUEUE_RELEASE, [], 'release'),
  keys: 3,
  args: 1,
  shared: 2,
};
const KEEP = new Script(scripts.QUEUE_KEEP, [], 'renewal');
export const QUEUE_FORCING: BatchPart = {
  letter: 'F',
  script: new Script(scripts.QUEUE_FORCE_UNLOCK, [], 'woken'),
  keys: 3,
  args: 1,
  shared: 0,
};
const INSPECT = new Script(scripts.QUEUE_INSPECT);

export const QUEUE_SCRIPTS: readonly Script[] = [
  ACQUIRE.script,
  RELEASE.script,
  KEEP,
  QUEUE_FORCING.script,
  INSPECT,
];
export const QUEUE_BATCH_PARTS: readonly BatchPart[] = [ACQUIRE, RELEASE];

/** Returns whether the subscription has opened since it had the epoch. */
const hasOpened = ({ epoch: current }: GrantSubscription, epoch: number | undefined): boolean =>
  current !== undefined && current !== epoch;

/** Gives up the entry of a claim. */
type Leave = (claim: ExclusiveClaim, uncertain: StoreFailure | undefined) => Promise<void>;

/** The queue entry of an owner. */
class RedisQueueEntry extends StoreQueueEntry {
  /** Whether it was refreshed since it was enqueued: a process does that once when it is subscribed. */
  wasKept = false;

  /** @param epoch opening of the grant subscription from which on its messages arrive; undefined while they do not */
  constructor(
    readonly requested: ExclusiveClaim,
    public epoch: number | undefined,
    leave: Leave,
  ) {
    super((uncertain) => leave(requested, uncertain));
  }
}

/** A grant by message, and the opening of the grant subscription in which it arrived. */
interface ReceivedGrant {
  readonly message: GrantMessage;
  readonly epoch: number | undefined;
}

/** A waiter that listens for the end of the hold. */
interface Watcher {
  readonly claim: ExclusiveClaim;
  /** Receives the failure when the process cannot be notified of a grant. */
  readonly failed: (failure: StoreFailure) => void;
}

/** Receives the outcome of a request. */
type Settle<T> = (reply: T) => void;

/** The exclusive lock with a wait queue in Redis; see `queue-scripts.ts`. */
export class RedisQueue {
  private readonly subscriptions: GrantSubscriptions;
  /** By owner, until a release or the grant of a request. */
  private readonly entries = new CompactingMap<string, RedisQueueEntry>();
  private readonly watchers = new Set<Watcher>();
  // Grant for an abandoned claim: release it.
  private readonly earlyGrants = new EarlyGrants<ReceivedGrant>(({ message }) => this.releaseGrant(message));
  private readonly entryText = new EntryText();

  constructor(
    private readonly link: RedisLink,
    private readonly leave: Leave,
  ) {
    this.subscriptions = new GrantSubscriptions(link, {
      received: (text, subscription) => this.received(text, subscription),
      // Waiters that are not yet subscribed to the announcements request again once they are.
      opened: (subscription) =>
        this.missedNotification(
          ({ requested }) =>
            this.subscriptions.of(requested) === subscription && this.isSubscribedTo(requested.finalKey),
        ),
      refused: (failure, subscription) => {
        for (const { claim, failed } of [...this.watchers])
          if (this.subscriptions.of(claim) === subscription) failed(failure);
      },
      waiting: () => this.waitingClaims(),
    });
  }

  acquire(claim: ExclusiveClaim, resolve: Settle<AcquireReply>, reject: Settle<unknown>): void {
    const { owner, waits, entryTerms: terms, reacquires } = claim;
    const epoch = this.subscriptions.of(claim)?.epoch;
    const entry =
      waits && terms
        ? this.entryText.of(terms, tokensRequested(claim, terms.tokens), epoch === undefined)
        : '';
    const request = this.earlyGrants.began();
    this.send(
      claim,
      entry,
      (reply) => {
        const early = this.earlyGrants.ended(request, owner);
        if (reply.status === 'queued')
          return resolve({ ...reply, entry: this.enqueued(claim, epoch, early) });
        // A confirmed grant is remembered until its end: its message may still come.
        if (!reacquires || reply.status === 'taken') this.forget(owner);
        resolve(reply);
      },
      (failure) => {
        const early = this.earlyGrants.ended(request, owner);
        if (early) this.releaseGrant(early.message);
        reject(failure);
      },
    );
  }

  /** Registers an owner that got the reply "queued", with what was missed since its request was sent. */
  private enqueued(
    claim: ExclusiveClaim,
    epoch: number | undefined,
    early: ReceivedGrant | undefined,
  ): StoreQueueEntry {
    const entry = new RedisQueueEntry(claim, epoch, this.leave);
    this.entries.set(claim.owner, entry);
    const subscription = this.subscriptions.open(claim);
    if (early) this.granted(entry, early);
    else if (hasOpened(subscription, epoch) && this.isSubscribedTo(claim.finalKey)) entry.mayHaveMissed();
    return entry;
  }

  /** Tells of the announcements of releases. */
  watch(claim: ExclusiveClaim, listener: WatchListener): Watch {
    const { finalKey } = claim;
    const watcher: Watcher = { claim, failed: (failure) => listener.failed(failure) };
    this.watchers.add(watcher);
    const notify = (): void => {
      if (this.watchers.has(watcher)) listener.notified();
    };
    const watch = this.link.channels.watch(this.link.keys.ofLock(finalKey).channel, {
      message: notify,
      // If the grant subscription opens at the same moment, the waiter sends one request for both reasons.
      notified: () => {
        const subscription = this.subscriptions.of(claim);
        if (subscription) subscription.whenSettled(notify);
        else notify();
      },
      failed: watcher.failed,
    });
    return {
      get live() {
        return watch.live;
      },
      close: () => {
        this.watchers.delete(watcher);
        watch.close();
      },
    };
  }

  async refreshEntries(claims: readonly (ExclusiveClaim & AtStrings)[]): Promise<readonly QueueEntryReply[]> {
    const { link } = this;
    return link.inBatches(claims, async (batch) => {
      const { epoch } = this.subscriptions.open(batch[0]!);
      const keys = batch.flatMap(({ finalKey }) => this.names(finalKey));
      const notSubscribed = epoch === undefined ? 1 : 0;
      const args = batch.flatMap(({ owner, entryTerms }) => [owner, entryTerms?.aliveMs ?? 0, notSubscribed]);
      args.push(...stringsArg(batch[0]!));
      const wereKept = batch.map(({ owner }) => this.entries.get(owner)?.wasKept ?? false);
      const read = (reply: unknown): readonly QueueEntryReply[] => readQueueKeep(reply, wereKept);
      const replies = await link.commands.run(KEEP, keys, args, read);
      // The request may have been the first one to a server of a cluster: there is a connection to check with now.
      if (epoch === undefined) this.subscriptions.open(batch[0]!);
      for (const [i, { status }] of replies.entries()) {
        const { owner } = batch[i]!;
        const entry = this.entries.get(owner);
        if (status === 'queued' && entry) Object.assign(entry, { epoch, wasKept: true });
        else if (status === 'gone') this.forget(owner);
      }
      return replies;
    });
  }

  /** Whether the process of an owner was notified of a grant. */
  wasGranted(owner: string): boolean {
    return this.entries.get(owner)?.outcome !== undefined;
  }

  release(
    { finalKey, owner }: ExclusiveClaim,
    { uncertain, keepForMs, until }: ReleaseOptions,
    resolve: Settle<ReleaseReply>,
    reject: Settle<unknown>,
  ): void {
    const { commands, publish, keys: names, channels } = this.link;
    const { keys, channel } = names.ofLock(finalKey);
    const args = [owner, publish, channels.isLive(channel) ? 1 : 0];
    const claim = { owner, until };
    const share = (resolve: Settle<ReleaseReply>, reject: Settle<unknown>): void =>
      commands.share({
        part: RELEASE,
        keys,
        batchKeys: undefined,
        args,
        claim,
        read: readQueueRelease,
        resolve: resolve as Settle<unknown>,
        reject,
      });
    if (!uncertain && keepForMs === undefined) return share(resolve, reject);
    const send = (): Promise<ReleaseReply> =>
      keepForMs === undefined
        ? new Promise(share)
        : commands.run(RELEASE.script, keys, [...args, keepForMs], readQueueRelease, claim);
    this.link.releaseAfter(uncertain, finalKey, send).then(resolve, reject);
  }

  forcing(finalKey: string): PartRun {
    return { part: QUEUE_FORCING, keys: this.names(finalKey), args: [this.link.publish] };
  }

  waiting(finalKey: string): Promise<readonly string[]> {
    const { commands, keys } = this.link;
    return commands.run(INSPECT, [keys.queue(keys.name(finalKey))], [], readOwners);
  }

  private send(
    claim: ExclusiveClaim & AtStrings,
    entry: string,
    resolve: Settle<QueueAcquire>,
    reject: Settle<unknown>,
  ): void {
    const { commands, publish } = this.link;
    const { finalKey, owner, leaseMs, tokens, reacquires } = claim;
    const args = [owner, leaseMs, tokensRequested(claim, tokens), entry];
    const keys = this.names(finalKey);
    const read = (reply: unknown): QueueAcquire => readQueueAcquire(reply, leaseMs, tokens);
    const strings = stringsArg(claim);
    if (reacquires || strings.length > 0) {
      commands.run(ACQUIRE.script, keys, [...args, publish, ...strings], read, claim).then(resolve, reject);
      return;
    }
    commands.share({
      part: ACQUIRE,
      keys,
      batchKeys: undefined,
      args,
      claim,
      read,
      resolve: resolve as Settle<unknown>,
      reject,
    });
  }

  private names(finalKey: string): readonly string[] {
    return this.link.keys.ofLock(finalKey).keys;
  }

  /** Whether this process hears the announcements of the lock. */
  private isSubscribedTo(finalKey: string): boolean {
    return this.link.channels.isLive(this.link.keys.ofLock(finalKey).channel);
  }

  forget(owner: string): void {
    // Most owners never wait.
    if (this.entries.size > 0) this.entries.delete(owner);
  }

  /** Messages may have been lost: notifies all queued owners, or these. */
  private missedNotification(isMeant: (entry: RedisQueueEntry) => boolean = () => true): void {
    for (const entry of [...this.entries.values()]) if (isMeant(entry)) entry.mayHaveMissed();
  }

  private *waitingClaims(): Iterable<ExclusiveClaim> {
    for (const { requested } of this.entries.values()) yield requested;
  }

  private received(text: string, { epoch }: GrantSubscription): void {
    const message = readGrantMessage(text);
    if (!message) return;
    const entry = this.entries.get(message.owner);
    if (entry) this.granted(entry, { message, epoch });
    else this.earlyGrants.add(message.owner, { message, epoch });
  }

  /** Accepts a grant only from a server at which the entry was refreshed since the subscription opened. */
  private granted(entry: RedisQueueEntry, { message, epoch }: ReceivedGrant): void {
    if (epoch === undefined || entry.epoch !== epoch) return this.missedNotification();
    const { token, tokens, provisionalLeaseMs, entriesLeft } = message;
    entry.notify({
      status: 'granted',
      validForMs: provisionalLeaseMs,
      ...(tokens > 0 && { token, tokens }),
      waiting: entriesLeft,
    });
  }

  private releaseGrant({ holdName, owner }: GrantMessage): void {
    const { commands, keys, publish } = this.link;
    const args = [owner, publish, 0];
    commands.run(RELEASE.script, keys.withQueue(holdName), args, readQueueRelease).catch(() => undefined);
  }
}
