import type { Claim } from '../../../core/seam/claim.js';
import type { KindStore } from '../../../core/seam/lock-store.js';
import type { KeyState, ReleaseReply } from '../../../core/seam/reply.js';
import type { StoreFailure } from '../../../core/seam/store-failure.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { isReplyError, RedisFailure } from '../connection/redis-failure.js';
import type { RedisSession } from '../connection/redis-session.js';
import type { RedisSubscriber } from '../connection/redis-subscriber.js';
import type { PartRun } from '../connection/script-batch.js';
import { COMMIT } from './commit.js';
import { readDone } from './numbers.js';
import type { RedisKeys } from '../redis-keys.js';

/** One claim could not be asked about. */
interface Failed {
  readonly status: 'failed';
  readonly cause: unknown;
}

/** Asking about more claims than this at once would keep Redis from others for too long. */
const BATCH = 100;

/** How one kind of lock is kept in Redis. */
export interface RedisKind<C extends Claim> extends KindStore<C> {
  /** Whether this process takes locks of the kind: a Redis user may have no rights for kinds that it does not use. */
  readonly inUse: boolean;
  /** See `LockStore.inspect`. A value that is no lock of this kind is refused as one of another type. */
  inspect(finalKey: string): Promise<KeyState | null>;
  /** The run of a script that ends the holds of this kind; its reply is 1 when there was one, else 0. See `LockStore.forceUnlock`. */
  forcing(finalKey: string): PartRun;
}

/** What the kinds of one store share: its connections, and what they ask in the same way. */
export class RedisLink {
  /** How the end of a hold is announced. */
  readonly publish = 'PUBLISH';

  constructor(
    readonly connection: RedisConnection,
    readonly subscriber: RedisSubscriber,
    readonly keys: RedisKeys,
  ) {}

  /** Whether others than this process were told on the channel. */
  othersTold(told: number, channel: string): boolean {
    return told > (this.subscriber.isLive(channel) ? 1 : 0);
  }

  /** Asks about many claims in batches. One that fails as a whole fails for its claims only, unless all do. */
  async inBatches<C, R>(
    claims: readonly C[],
    ask: (batch: readonly C[]) => Promise<readonly R[]>,
  ): Promise<readonly (R | Failed)[]> {
    const batches: (readonly C[])[] = [];
    for (let from = 0; from < claims.length; from += BATCH) {
      batches.push(claims.slice(from, from + BATCH));
    }
    const outcomes = await Promise.allSettled(batches.map(ask));
    const failures = outcomes.filter((outcome) => outcome.status === 'rejected');
    if (failures.length > 0 && failures.length === outcomes.length) throw failures[0]!.reason as Error;
    return outcomes.flatMap((outcome, i): readonly (R | Failed)[] =>
      outcome.status === 'fulfilled'
        ? outcome.value
        : batches[i]!.map((): Failed => ({ status: 'failed', cause: outcome.reason as unknown })),
    );
  }

  /** See `KindStore.commit`. `field`: what the owner has in the hold. */
  commit(finalKey: string, field: string, token: number): Promise<boolean> {
    const { connection, keys } = this;
    const name = keys.name(finalKey);
    const run = { part: COMMIT, keys: [name, keys.fence(name)], args: [field, token] };
    return connection.runShared(run, readDone);
  }

  /**
   * Releases a hold. With a doubt about its acquire it answers only what is final: the acquire is done, or can never be
   * done any more.
   */
  releaseAfter(doubt: StoreFailure | undefined, send: () => Promise<ReleaseReply>): Promise<ReleaseReply> {
    return doubt instanceof RedisFailure && doubt.session
      ? this.releaseForCertain(doubt.session, send)
      : send();
  }

  private async releaseForCertain(
    session: RedisSession,
    send: () => Promise<ReleaseReply>,
  ): Promise<ReleaseReply> {
    const sameConnection = session === this.connection.current;
    const ended = !sameConnection && (await this.endSession(session));
    const reply = await send();
    // On the connection of the acquire, "not there" is final: commands are executed in the order they were sent.
    const inOrder = sameConnection && session === this.connection.current;
    if (!reply.wasHeld && !ended && !inOrder) {
      throw new RedisFailure('an earlier command may still arrive', 'unknown', {});
    }
    return reply;
  }

  /**
   * Makes sure that nothing more arrives from a connection that is gone for us but perhaps not for the server:
   * its last bytes may still be on their way. The address keeps a stranger with the same id on another server
   * out of harm's way. False when the server does not allow it.
   */
  private async endSession({ id, address }: RedisSession): Promise<boolean> {
    if (id === undefined) return false;
    const args = ['kill', 'id', id, ...(address === undefined ? [] : ['addr', address])];
    try {
      await this.connection.send({ command: 'client', args, read: () => undefined });
      return true;
    } catch (failure) {
      if (failure instanceof RedisFailure && isReplyError(failure.cause)) return false;
      throw failure;
    }
  }
}
