import { queueEntryTermsOf, type Claim } from '../../../lib/core/seam/claim.js';
import type {
  KindStore,
  KindStores,
  LockStore,
  ReleaseOptions,
  Watch,
  WatchListener,
} from '../../../lib/core/seam/lock-store.js';
import type { Grant } from '../../../lib/core/seam/grant.js';
import { EntriesByOwner } from './entries-by-owner.js';
import type {
  AcquireReply,
  ExtendReply,
  KeyState,
  QueueEntryReply,
  ReleaseReply,
  Taken,
} from '../../../lib/core/seam/reply.js';
import type { SpaceReply } from '../../../lib/stores/memory/kinds/kind-holds.js';
import type { Session } from '../network/session.js';
import type { Quirks } from '../quirks.js';
import { grantChannel, type GrantMessage } from '../server/grant-message.js';
import type { SimConnection } from './sim-connection.js';
import { SimFair } from './sim-fair.js';
import { SimLatches, SimSemaphores } from './sim-objects.js';
import { SimReadWrite } from './sim-read-write.js';
import { SimFailure } from './sim-failure.js';
import type { SimSubscriber } from './sim-subscriber.js';

/** What the Redis store does, over the simulated connections. */
export class SimStore implements LockStore, KindStore {
  readonly kinds: KindStores;
  readonly semaphores: SimSemaphores;
  readonly latches: SimLatches;
  /** Opened by the first that waits, and never closed. */
  private grantWatch: Watch | undefined;
  /** For each owner that waits: over which connections its line was asked about that its messages come from. */
  private readonly epochs = new Map<string, string | undefined>();
  private readonly entries = new EntriesByOwner();

  constructor(
    private readonly connection: SimConnection,
    private readonly subscriber: SimSubscriber,
    private readonly quirks: Quirks,
  ) {
    const readWrite = new SimReadWrite(this, connection);
    const fair = new SimFair(this, connection, subscriber);
    this.semaphores = new SimSemaphores(connection, subscriber);
    this.latches = new SimLatches(connection, subscriber);
    this.kinds = { exclusive: this, permit: this, fair, read: readWrite, write: readWrite };
  }

  async acquire(claim: Claim): Promise<AcquireReply> {
    const { owner } = claim;
    // Who asks whether it has what its place was given stays known: what it was told of that may still come.
    if (!claim.waits || !queueEntryTermsOf(claim)) return this.send(claim) as Promise<Grant | Taken>;
    const ended = (): void => {
      this.entries.close(owner);
      this.epochs.delete(owner);
    };
    const entry = this.entries.open(owner, (uncertain) =>
      this.release(claim, { uncertain }).then(() => void this.epochs.delete(owner)),
    );
    this.grantWatch ??= this.subscriber.watch(
      grantChannel(owner),
      (grant) => (grant ? this.received(grant) : this.entries.mayHaveMissed()),
      () => undefined,
    );
    this.epochs.set(owner, this.epochOf(owner));
    try {
      const reply = await this.send(claim);
      if (reply.status === 'queued') return { ...reply, entry };
      ended();
      return reply;
    } catch (failure) {
      ended();
      throw failure;
    }
  }

  async refreshEntries(claims: readonly Claim[]): Promise<readonly QueueEntryReply[]> {
    const epoch = this.epochOf(claims[0]!.owner);
    const notSubscribed = epoch === undefined;
    const replies = await this.connection.send<readonly QueueEntryReply[]>({
      name: 'keep',
      claims,
      notSubscribed,
    });
    for (const [i, { status }] of replies.entries()) {
      const { owner } = claims[i]!;
      if (status === 'queued') this.epochs.set(owner, epoch);
      else if (status === 'gone') this.entries.close(owner);
    }
    return replies;
  }

  private send(claim: Claim): Promise<SpaceReply> {
    const notSubscribed = this.epochOf(claim.owner) === undefined;
    return this.connection.send<SpaceReply>({ name: 'acquire', claim, notSubscribed });
  }

  /** Which connections messages and answers come over; undefined unless both lead to the same run of the server. */
  private epochOf(owner: string): string | undefined {
    const commands = this.connection.current;
    const messages = this.subscriber.sessionOf(grantChannel(owner));
    return commands && messages?.run === commands.run ? `${commands.id} ${messages.id}` : undefined;
  }

  /** Who does not wait any more gives back what it was given. */
  private received({ key: finalKey, owner, grant }: GrantMessage): void {
    const epoch = this.epochOf(owner);
    const isCertain = epoch !== undefined && this.epochs.get(owner) === epoch;
    if (this.epochs.has(owner) && !isCertain && !this.quirks.believesEveryServer) {
      return this.entries.mayHaveMissed();
    }
    this.epochs.delete(owner);
    if (this.entries.notify(owner, grant)) return;
    const claim: Claim = { kind: 'exclusive', finalKey, owner, leaseMs: 1, tokens: 0, waits: false };
    this.release(claim).catch(() => undefined);
  }

  extendMany(claims: readonly Claim[]): Promise<readonly ExtendReply[]> {
    return this.connection.send<readonly ExtendReply[]>({ name: 'extend', claims });
  }

  async release(claim: Claim, { uncertain, keepForMs }: ReleaseOptions = {}): Promise<ReleaseReply> {
    return uncertain instanceof SimFailure && uncertain.session
      ? this.releaseForCertain(uncertain.session, claim, keepForMs)
      : this.sendRelease(claim, keepForMs);
  }

  watch({ finalKey }: Claim, listener: WatchListener): Watch {
    return this.subscriber.watch(
      finalKey,
      () => listener.notified(),
      (failure) => listener.failed(failure),
    );
  }

  inspect(key: string): Promise<KeyState | null> {
    return this.connection.send<KeyState | null>({ name: 'inspect', key });
  }

  forceUnlock(key: string): Promise<boolean> {
    return this.connection.send<boolean>({ name: 'forceUnlock', key });
  }

  async ping(): Promise<void> {
    await this.connection.send({ name: 'ping' });
  }

  close(): Promise<void> {
    this.connection.close();
    this.subscriber.close();
    return Promise.resolve();
  }

  private sendRelease(claim: Claim, keepForMs: number | undefined): Promise<ReleaseReply> {
    return this.connection.send<ReleaseReply>({ name: 'release', claim, keepForMs });
  }

  /** Answers only what is final: the acquire of that session is done, or can never be done any more. */
  private async releaseForCertain(
    session: Session,
    claim: Claim,
    keepForMs: number | undefined,
  ): Promise<ReleaseReply> {
    if (this.quirks.trustsEveryUndo) return this.sendRelease(claim, keepForMs);
    const sameConnection = session === this.connection.current;
    const ended =
      !sameConnection && (await this.connection.send<boolean>({ name: 'kill', session: session.id }));
    const reply = await this.sendRelease(claim, keepForMs);
    const inOrder = sameConnection && session === this.connection.current;
    if (!reply.wasHeld && !ended && !inOrder)
      throw new SimFailure('an earlier command may still arrive', 'unknown', { passing: true });
    return reply;
  }
}
