import { portionsOf } from '../../../core/util/portions.js';
import type { Runtime } from '../../../core/util/runtime.js';
import type { Claim } from '../../../core/seam/claim.js';
import type { KeyState, ReleaseReply } from '../../../core/seam/reply.js';
import type { StoreFailure } from '../../../core/seam/store-failure.js';
import { isReplyError, RedisFailure } from '../connection/redis-failure.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import type { RedisSession } from '../connection/redis-session.js';
import type { NodeKind } from '../quorum/node-store.js';
import type { Commands } from '../connection/commands.js';
import type { Channels, RedisTopology } from '../connection/redis-topology.js';
import type { PartRun } from '../connection/script-batch.js';
import type { AtStrings } from './foreign-holds.js';
import { COMMIT } from './commit.js';
import { readDone } from './numbers.js';
import type { RedisKeys } from '../redis-keys.js';

interface Failed {
  readonly status: 'failed';
  readonly cause: unknown;
}

/** Maximum number of claims in one request: a larger one would keep Redis from other clients for too long. */
const BATCH = 100;

/** One kind of lock in Redis. */
export interface RedisKind<C extends Claim> extends NodeKind<C> {
  /** Whether this process takes locks of the kind. Its Redis user may lack the rights for unused kinds. */
  readonly inUse: boolean;
  /** Returns the state of a key, also of one that has only waiters; see `LockStore.inspect`. Rejects for a lock of another kind as for a wrong type. */
  inspect(finalKey: string, how?: AtStrings): Promise<KeyState | null>;
  /** Returns the run of a script that ends the holds of this kind. Its reply is 1 when there was a hold, else 0. */
  forcing(finalKey: string): PartRun;
}

/** Connections and common requests of the kinds of one store. */
export class RedisLink {
  readonly commands: Commands;
  readonly channels: Channels;
  /** Whether nothing comes any more of an earlier session. */
  private readonly ended = new WeakMap<RedisSession, Promise<boolean>>();

  constructor(
    readonly topology: RedisTopology,
    readonly keys: RedisKeys,
    readonly runtime: Runtime,
  ) {
    this.commands = topology.commands;
    this.channels = topology.channels;
  }

  /** Command that announces the end of a hold. */
  get publish(): string {
    return this.topology.publish;
  }

  /** Returns whether other processes than this one received a message. `told` is the number of receivers. */
  reachesOthers(receivers: number, channel: string): boolean {
    return receivers > (this.channels.isLive(channel) ? 1 : 0);
  }

  /**
   * Sends requests for many claims in batches, each for claims that one script can serve. A failed batch affects its
   * own claims only, unless all batches fail.
   */
  async inBatches<C extends Pick<Claim, 'finalKey'>, R>(
    claims: readonly C[],
    request: (batch: readonly C[]) => Promise<readonly R[]>,
  ): Promise<readonly (R | Failed)[]> {
    const groupOf = (i: number): number => this.topology.groupOf(this.keys.name(claims[i]!.finalKey));
    const batches = portionsOf(claims.keys(), BATCH, groupOf);
    const outcomes = await Promise.allSettled(batches.map((batch) => request(batch.map((i) => claims[i]!))));
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

  /** See `KindStore.unsent`. */
  unsent({ finalKey, owner }: Claim): StoreFailure | undefined {
    return this.commands.failureOf(this.keys.name(finalKey), owner);
  }

  /** Commits a fencing token; see `NodeKind.commit`. `field` is the owner's field in the hold. */
  commit(finalKey: string, field: string, token: number): Promise<boolean> {
    const { commands, keys } = this;
    const name = keys.name(finalKey);
    const run = { part: COMMIT, keys: [name, keys.fence(name)], args: [field, token] };
    return commands.runShared(run, readDone);
  }

  /** Releases a hold. After an uncertain acquire only a final reply counts: it was executed, or never will be. */
  releaseAfter(
    uncertain: StoreFailure | undefined,
    finalKey: string,
    send: () => Promise<ReleaseReply>,
  ): Promise<ReleaseReply> {
    return uncertain instanceof RedisFailure && uncertain.session
      ? this.releaseForCertain(uncertain.session, finalKey, send)
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
    // On the connection of the acquire, "not there" is final: Redis executes commands in the order in which they were
    // sent.
    const inOrder = sameConnection && session === this.topology.connectionTo(name)?.current;
    if (!reply.wasHeld && !ended && !inOrder) {
      throw new RedisFailure('an earlier command may still arrive', 'unknown', {});
    }
    return reply;
  }

  /**
   * Ends an old connection at the server, so that none of its bytes arrives later. For this process the connection is
   * gone, but perhaps not for the server. The address protects a foreign connection that has the same id on another
   * server. Resolves with false when the server does not allow it. Undos of one session share the request: sent by each
   * of them, it would keep renewals from a slow server.
   */
  private async endSession(session: RedisSession): Promise<boolean> {
    const connection = this.topology.connectionOf(session);
    // A late command has no effect at a server that has left the cluster.
    if (!connection) return true;
    const { id, address } = session;
    // The connection is in use for other slots, or the server has not told its id.
    if (session === connection.current || id === undefined) return false;
    const known = this.ended.get(session);
    if (known) return known;
    const ending = this.kill(connection, [
      'kill',
      'id',
      id,
      ...(address === undefined ? [] : ['addr', address]),
    ]);
    this.ended.set(session, ending);
    const again = (isEnded: boolean): void => void (isEnded || this.ended.delete(session));
    ending.then(again, () => again(false));
    return ending;
  }

  private async kill(connection: RedisConnection, args: readonly string[]): Promise<boolean> {
    try {
      await connection.send({ command: 'client', args, read: () => undefined });
      return true;
    } catch (failure) {
      if (failure instanceof RedisFailure && isReplyError(failure.cause)) return false;
      throw failure;
    }
  }
}
