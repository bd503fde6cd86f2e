import type { Claim } from '../../../lib/core/seam/claim.js';
import type {
  KindStore,
  KindStores,
  LockStore,
  ReleaseOptions,
  Watch,
  WatchListener,
} from '../../../lib/core/seam/lock-store.js';
import type { AcquireReply, ExtendReply, KeyState, ReleaseReply } from '../../../lib/core/seam/reply.js';
import type { Session } from '../network/session.js';
import type { Quirks } from '../quirks.js';
import type { SimConnection } from './sim-connection.js';
import { SimFailure } from './sim-failure.js';
import type { SimSubscriber } from './sim-subscriber.js';

/** What the Redis store does, over the simulated connections. */
export class SimStore implements LockStore, KindStore {
  readonly kinds: KindStores = { exclusive: this, permit: this };

  constructor(
    private readonly connection: SimConnection,
    private readonly subscriber: SimSubscriber,
    private readonly quirks: Quirks,
  ) {}

  acquire(claim: Claim): Promise<AcquireReply> {
    return this.connection.send<AcquireReply>({ name: 'acquire', claim });
  }

  extendMany(claims: readonly Claim[]): Promise<readonly ExtendReply[]> {
    return this.connection.send<readonly ExtendReply[]>({ name: 'extend', claims });
  }

  async release(claim: Claim, { doubt, keepForMs }: ReleaseOptions = {}): Promise<ReleaseReply> {
    return doubt instanceof SimFailure && doubt.session
      ? this.releaseForCertain(doubt.session, claim, keepForMs)
      : this.sendRelease(claim, keepForMs);
  }

  watch({ finalKey }: Claim, listener: WatchListener): Watch {
    return this.subscriber.watch(
      finalKey,
      () => listener.hint(),
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
      throw new SimFailure('an earlier command may still arrive', 'unknown');
    return reply;
  }
}
