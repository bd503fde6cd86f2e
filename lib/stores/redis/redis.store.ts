import type {
  AcquireReply,
  Claim,
  ExtendReply,
  HoldInfo,
  LockKind,
  ReleaseReply,
} from '../../core/seam/claim.js';
import { checkMs, reading } from '../../core/settings/option-checks.js';
import type { LockStore, ReleaseOptions, StoreFailure, Watch } from '../../core/seam/lock-store.js';
import { evictionWarning } from './eviction.js';
import { twinOf } from './connection/redis-client.js';
import { RedisConnection } from './connection/redis-connection.js';
import { RedisFailure, isReplyError } from './connection/redis-failure.js';
import { RedisKeys } from './redis-keys.js';
import {
  readAcquire,
  readExtend,
  readForceUnlock,
  readInspect,
  readRelease,
} from './kinds/exclusive/replies.js';
import { createClients, resolveEndpoint, type RedisSource } from './connection/redis-settings.js';
import type { RedisSession } from './connection/redis-session.js';
import { RedisSubscriber } from './connection/redis-subscriber.js';
import { Script } from './connection/script.js';
import {
  EXCLUSIVE_ACQUIRE,
  EXCLUSIVE_EXTEND,
  EXCLUSIVE_FORCE_UNLOCK,
  EXCLUSIVE_INSPECT,
  EXCLUSIVE_RELEASE,
} from './kinds/exclusive/scripts.js';

export interface RedisStoreOptions {
  /** Where Redis is; see {@link RedisSource}. */
  readonly redis: RedisSource;
  /** How long one command may take, connecting included, in ms. Default: 2,000. */
  readonly commandTimeoutMs?: number;
}

const scripts = {
  acquire: new Script(EXCLUSIVE_ACQUIRE),
  release: new Script(EXCLUSIVE_RELEASE),
  extend: new Script(EXCLUSIVE_EXTEND),
  forceUnlock: new Script(EXCLUSIVE_FORCE_UNLOCK),
  inspect: new Script(EXCLUSIVE_INSPECT),
};

/** Renewing more holds than this at once would keep Redis from others for too long. */
const EXTEND_BATCH = 100;

/**
 * Keeps holds on one Redis server (or behind Sentinel), in Redisson's layout. Opens two connections of its own when it
 * is first asked for a lock, one for commands and one for wake-ups, and closes both.
 */
export class RedisStore implements LockStore {
  readonly kinds: ReadonlySet<LockKind> = new Set<LockKind>(['exclusive']);
  private readonly keys: RedisKeys;
  private readonly connection: RedisConnection;
  private readonly subscriber: RedisSubscriber;
  private readonly publish = 'PUBLISH';
  /** The connections of {@link diagnose}, where there was none yet. */
  private readonly checks = new Set<RedisConnection>();
  private openCheck: () => RedisConnection | undefined;

  constructor(options: RedisStoreOptions) {
    const { redis, commandTimeoutMs } = reading('The options of RedisStore', () => ({
      redis: options.redis,
      commandTimeoutMs: options.commandTimeoutMs,
    }));
    const timeoutMs = checkMs('commandTimeoutMs', commandTimeoutMs, { min: 1 }) ?? 2_000;
    const endpoint = resolveEndpoint(redis, timeoutMs);
    this.keys = new RedisKeys(endpoint.keyPrefix);
    const [commands, subscriber] = createClients(endpoint);
    this.connection = new RedisConnection(commands, timeoutMs, Object.values(scripts));
    this.subscriber = new RedisSubscriber(subscriber, timeoutMs);
    // Beside the first lock, so that nobody has to wait for it.
    commands.on('connect', () => this.subscriber.open());
    this.openCheck = () => {
      const twin = twinOf(commands);
      return twin && new RedisConnection(twin, timeoutMs);
    };
  }

  /** Number of channels this process listens to; for tests. */
  get subscriptions(): number {
    return this.subscriber.size;
  }

  checkKey(key: string): void {
    this.keys.check(key);
  }

  acquire(claim: Claim): Promise<AcquireReply> {
    const { key, owner, leaseMs, fenceBlock, rearms } = claim;
    const name = this.keys.hold(key);
    const fenced = fenceBlock > 0;
    const keys = fenced ? [name, this.keys.fence(name)] : [name];
    const args = [owner, leaseMs, fenceBlock];
    const read = (reply: unknown) => readAcquire(reply, leaseMs, fenced);
    if (!rearms) return this.connection.runShared({ script: scripts.acquire, letter: 'a', keys, args }, read);
    return this.connection.run(scripts.acquire, keys, [...args, this.keys.channel(name), this.publish], read);
  }

  async extendMany(claims: readonly Claim[]): Promise<readonly ExtendReply[]> {
    const replies = new Array<ExtendReply>(claims.length);
    const batches = batchesOf(claims.length);
    const failures = await Promise.all(
      batches.map((batch) => this.extendBatch(claims, batch, replies).catch((failure: unknown) => failure)),
    );
    if (failures.length > 0 && failures.every((failure) => failure !== undefined)) throw failures[0] as Error;
    failures.forEach((cause, i) => {
      if (cause !== undefined) for (const at of batches[i]!) replies[at] = { status: 'failed', cause };
    });
    return replies;
  }

  release(claim: Claim, { doubt, keepForMs }: ReleaseOptions = {}): Promise<ReleaseReply> {
    const name = this.keys.hold(claim.key);
    const channel = this.keys.channel(name);
    const args = [claim.owner, channel, this.publish];
    const read = (reply: unknown): ReleaseReply => {
      const told = readRelease(reply);
      return { wasHeld: told !== -1, othersWaiting: told > (this.subscriber.isLive(channel) ? 1 : 0) };
    };
    const send = () =>
      keepForMs === undefined
        ? this.connection.runShared({ script: scripts.release, letter: 'r', keys: [name], args }, read)
        : this.connection.run(scripts.release, [name], [...args, keepForMs], read);
    return doubt instanceof RedisFailure && doubt.session
      ? this.releaseForCertain(doubt.session, send)
      : send();
  }

  watch(_kind: LockKind, key: string, onHint: () => void, onFailure: (cause: StoreFailure) => void): Watch {
    return this.subscriber.watch(this.keys.channel(this.keys.hold(key)), onHint, onFailure);
  }

  inspect(_kind: LockKind, key: string): Promise<HoldInfo | null> {
    return this.connection.run(scripts.inspect, [this.keys.hold(key)], [], readInspect);
  }

  forceUnlock(_kind: LockKind, key: string): Promise<boolean> {
    const name = this.keys.hold(key);
    const args = [this.keys.channel(name), this.publish];
    return this.connection.run(scripts.forceUnlock, [name], args, readForceUnlock);
  }

  async ping(): Promise<void> {
    await this.connection.send({ command: 'ping', args: [], read: () => undefined });
  }

  /**
   * Warns of a server that evicts locks. Who may not run INFO is told nothing. Leaves no connection open that was
   * not: when the app then fails to start, there is nobody who would close it.
   */
  async diagnose(): Promise<readonly string[]> {
    const check = this.connection.current ? undefined : this.openCheck();
    if (check) this.checks.add(check);
    try {
      const connection = check ?? this.connection;
      const memory = await connection.send({ command: 'info', args: ['memory'], read: String });
      const warning = evictionWarning(memory);
      return warning === undefined ? [] : [warning];
    } catch (failure) {
      if (failure instanceof RedisFailure && isReplyError(failure.cause)) return [];
      throw failure;
    } finally {
      check?.close();
      if (check) this.checks.delete(check);
    }
  }

  close(): Promise<void> {
    this.openCheck = () => undefined;
    for (const check of this.checks) check.close();
    this.connection.close();
    this.subscriber.close();
    return Promise.resolve();
  }

  /**
   * Releases a hold whose acquire was never answered, and answers only what is final: the acquire is done, or can
   * never be done any more.
   */
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

  private async extendBatch(
    claims: readonly Claim[],
    batch: readonly number[],
    replies: ExtendReply[],
  ): Promise<void> {
    const names = batch.map((at) => this.keys.hold(claims[at]!.key));
    const args = batch.flatMap((at) => [claims[at]!.owner, claims[at]!.leaseMs]);
    const read = (reply: unknown) => readExtend(reply, batch.length);
    const answers = await this.connection.run(scripts.extend, names, args, read);
    batch.forEach((at, i) => (replies[at] = answers[i]!));
  }
}

/** The positions of so many claims, in batches. */
const batchesOf = (count: number): number[][] => {
  const batches: number[][] = [];
  for (let from = 0; from < count; from += EXTEND_BATCH) {
    batches.push(Array.from({ length: Math.min(EXTEND_BATCH, count - from) }, (_, i) => from + i));
  }
  return batches;
};
