import type { Claim } from '../../../core/seam/claim.js';
import type { KindStore } from '../../../core/seam/lock-store.js';
import type { KeyState, ReleaseReply } from '../../../core/seam/reply.js';
import type { StoreFailure } from '../../../core/seam/store-failure.js';
import { isReplyError, RedisFailure } from '../connection/redis-failure.js';
import type { RedisSession } from '../connection/redis-session.js';
import type { Commands } from '../connection/commands.js';
import type { Channels, RedisTopology } from '../connection/redis-topology.js';
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
  readonly commands: Commands;
  readonly channels: Channels;

  constructor(
    readonly topology: RedisTopology,
    readonly keys: RedisKeys,
  ) {
    this.commands = topology.commands;
    this.channels = topology.channels;
  }

  /** How the end of a hold is announced. */
  get publish(): string {
    return this.topology.publish;
  }

  /** Whether others than this process were told on the channel. */
  othersTold(told: number, channel: string): boolean {
    return told > (this.channels.isLive(channel) ? 1 : 0);
  }

  /**
   * Asks about many claims in batches, each of claims that one script can be run for. One that fails as a whole fails for
   * its claims only, unless all do.
   */
  async inBatches<C extends Pick<Claim, 'finalKey'>, R>(
    claims: readonly C[],
    ask: (batch: readonly C[]) => Promise<readonly R[]>,
  ): Promise<readonly (R | Failed)[]> {
    const batches = this.batchesOf(claims);
    const outcomes = await Promise.allSettled(batches.map((batch) => ask(batch.map((i) => claims[i]!))));
    const failures = outcomes.filter((outcome) => outcome.status === 'rejected');
    if (failures.length > 0 && failures.length === outcomes.length) throw failures[0]!.reason as Error;
    const replies = new Array<R | Failed>(claims.length);
    for (const [b, outcome] of outcomes.entries()) {
      for (const [at, i] of batches[b]!.entries()) {
        replies[i] =
          outcome.status === 'fulfilled'
            ? outcome.value[at]!
            : { status: 'failed', cause: outcome.reason as unknown };
      }
    }
    return replies;
  }

  /** Which claims are asked about together, by their numbers. */
  private batchesOf(claims: readonly Pick<Claim, 'finalKey'>[]): readonly (readonly number[])[] {
    const batches: number[][] = [];
    const open = new Map<number, number[]>();
    for (const [i, { finalKey }] of claims.entries()) {
      const group = this.topology.groupOf(this.keys.name(finalKey));
      let batch = open.get(group);
      if (!batch || batch.length === BATCH) {
        open.set(group, (batch = []));
        batches.push(batch);
      }
      batch.push(i);
    }
    return batches;
  }

  /** See `KindStore.commit`. `field`: what the owner has in the hold. */
  commit(finalKey: string, field: string, token: number): Promise<boolean> {
    const { commands, keys } = this;
    const name = keys.name(finalKey);
    const run = { part: COMMIT, keys: [name, keys.fence(name)], args: [field, token] };
    return commands.runShared(run, readDone);
  }

  /**
   * Releases a hold. With a doubt about its acquire it answers only what is final: the acquire is done, or can never be
   * done any more.
   */
  releaseAfter(
    doubt: StoreFailure | undefined,
    finalKey: string,
    send: () => Promise<ReleaseReply>,
  ): Promise<ReleaseReply> {
    return doubt instanceof RedisFailure && doubt.session
      ? this.releaseForCertain(doubt.session, finalKey, send)
      : send();
  }

  private async releaseForCertain(
    session: RedisSession,
    finalKey: string,
    send: () => Promise<ReleaseReply>,
  ): Promise<ReleaseReply> {
    const name = this.keys.name(finalKey);
    const connection = this.topology.connectionTo(name);
    const sameConnection = session === connection?.current;
    const ended = !sameConnection && (await this.endSession(session));
    const reply = await send();
    // On the connection of the acquire, "not there" is final: commands are executed in the order they were sent.
    const inOrder = sameConnection && session === this.topology.connectionTo(name)?.current;
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
  private async endSession(session: RedisSession): Promise<boolean> {
    const connection = this.topology.connectionOf(session);
    // A server that is none of the cluster any more has nothing to say, whatever is still on its way to it.
    if (!connection) return true;
    const { id, address } = session;
    // In use for other slots; or the server would not say how it knows the connection.
    if (session === connection.current || id === undefined) return false;
    const args = ['kill', 'id', id, ...(address === undefined ? [] : ['addr', address])];
    try {
      await connection.send({ command: 'client', args, read: () => undefined });
      return true;
    } catch (failure) {
      if (failure instanceof RedisFailure && isReplyError(failure.cause)) return false;
      throw failure;
    }
  }
}
