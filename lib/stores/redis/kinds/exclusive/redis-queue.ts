import { CompactingMap } from '../../../../core/util/compacting.js';
import type { ExclusiveClaim } from '../../../../core/seam/claim.js';
import type { ReleaseOptions, Watch, WatchListener } from '../../../../core/seam/lock-store.js';
import { StoreQueueEntry } from '../../../../core/seam/queue-entry.js';
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

/** State of an owner with a queue entry. */
interface QueuedOwner {
  readonly claim: ExclusiveClaim;
  /** Opening of the grant subscription from which on its messages arrive; undefined while they do not. */
  epoch: number | undefined;
  /** Undefined until the reply `queued`. */
  entry: StoreQueueEntry | undefined;
  /** Whether its entry has its outcome: a grant, or its caller gave up. */
  isOver: boolean;
  /** Whether the entry was refreshed since it was enqueued: a process does that once when it is subscribed. */
  wasKept: boolean;
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
  private readonly queuedOwners = new CompactingMap<string, QueuedOwner>();
  private readonly watchers = new Set<Watcher>();
  // Grant for an abandoned claim: release it.
  private readonly earlyGrants = new EarlyGrants<ReceivedGrant>(({ message }) => this.releaseGrant(message));
  private readonly entryText = new EntryText();

  /** @param leave gives up the entry of a claim */
  constructor(
    private readonly link: RedisLink,
    private readonly leave: (claim: ExclusiveClaim, uncertain: StoreFailure | undefined) => Promise<void>,
  ) {
    this.subscriptions = new GrantSubscriptions(link, {
      received: (text, subscription) => this.received(text, subscription),
      // Waiters that are not yet subscribed to the announcements request again once they are.
      opened: (subscription) =>
        this.missedNotification(
          ({ claim }) => this.subscriptions.of(claim) === subscription && this.isSubscribedTo(claim.finalKey),
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
    const queuedOwner: QueuedOwner = { claim, epoch, entry: undefined, isOver: false, wasKept: false };
    this.queuedOwners.set(claim.owner, queuedOwner);
    const subscription = this.subscriptions.open(claim);
    const entry = this.entryOf(queuedOwner);
    if (early) this.granted(queuedOwner, early);
    else if (hasOpened(subscription, epoch) && this.isSubscribedTo(claim.finalKey)) entry.mayHaveMissed();
    return entry;
  }

  private entryOf(queuedOwner: QueuedOwner): StoreQueueEntry {
    const { claim } = queuedOwner;
    return (queuedOwner.entry ??= new StoreQueueEntry((uncertain) => {
      queuedOwner.isOver = true;
      return this.leave(claim, uncertain);
    }));
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
      const wereKept = batch.map(({ owner }) => this.queuedOwners.get(owner)?.wasKept ?? false);
      const read = (reply: unknown): readonly QueueEntryReply[] => readQueueKeep(reply, wereKept);
      const replies = await link.commands.run(KEEP, keys, args, read);
      // The request may have been the first one to a server of a cluster: there is a connection to check with now.
      if (epoch === undefined) this.subscriptions.open(batch[0]!);
      for (const [i, { status }] of replies.entries()) {
        const { owner } = batch[i]!;
        const queuedOwner = this.queuedOwners.get(owner);
        if (status === 'queued' && queuedOwner) Object.assign(queuedOwner, { epoch, wasKept: true });
        else if (status === 'gone') this.forget(owner);
      }
      return replies;
    });
  }

  /** Gives up the owner's entry. Returns false if its process was notified of a grant already. */
  giveUp(owner: string): boolean {
    const queuedOwner = this.queuedOwners.get(owner);
    if (queuedOwner?.isOver) return false;
    if (queuedOwner) queuedOwner.isOver = true;
    return true;
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
    const queuedOwner = this.queuedOwners.size > 0 ? this.queuedOwners.get(owner) : undefined;
    if (!queuedOwner) return;
    queuedOwner.isOver = true;
    this.queuedOwners.delete(owner);
  }

  /** Messages may have been lost: notifies all queued owners, or these. */
  private missedNotification(isMeant: (queuedOwner: QueuedOwner) => boolean = () => true): void {
    for (const queuedOwner of [...this.queuedOwners.values()]) {
      if (!queuedOwner.isOver && isMeant(queuedOwner)) this.entryOf(queuedOwner).mayHaveMissed();
    }
  }

  private *waitingClaims(): Iterable<ExclusiveClaim> {
    for (const { claim } of this.queuedOwners.values()) yield claim;
  }

  private received(text: string, { epoch }: GrantSubscription): void {
    const message = readGrantMessage(text);
    if (!message) return;
    const queuedOwner = this.queuedOwners.get(message.owner);
    if (queuedOwner) this.granted(queuedOwner, { message, epoch });
    else this.earlyGrants.add(message.owner, { message, epoch });
  }

  /** Accepts a grant only from a server at which the entry was refreshed since the subscription opened. */
  private granted(queuedOwner: QueuedOwner, { message, epoch }: ReceivedGrant): void {
    if (epoch === undefined || queuedOwner.epoch !== epoch) return this.missedNotification();
    // Duplicate grant: ignore it.
    if (queuedOwner.isOver) return;
    queuedOwner.isOver = true;
    const { token, tokens, provisionalLeaseMs, entriesLeft } = message;
    this.entryOf(queuedOwner).notify({
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
