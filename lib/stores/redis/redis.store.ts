import { checkMs, reading } from '../../core/settings/option-checks.js';
import type { LockKind } from '../../core/kinds/kinds.js';
import type { ClaimOf } from '../../core/seam/claim.js';
import type { LockStore } from '../../core/seam/lock-store.js';
import type { KeyState } from '../../core/seam/reply.js';
import { twinOf } from './connection/redis-client.js';
import { RedisConnection } from './connection/redis-connection.js';
import { RedisFailure, isReplyError, isWrongType } from './connection/redis-failure.js';
import { createClients, resolveEndpoint, type RedisSource } from './connection/redis-settings.js';
import { RedisSubscriber } from './connection/redis-subscriber.js';
import { evictionWarning } from './eviction.js';
import {
  EXCLUSIVE_BATCH_PARTS,
  EXCLUSIVE_SCRIPTS,
  RedisExclusive,
} from './kinds/exclusive/redis-exclusive.js';
import { PERMIT_SCRIPTS, RedisPermit } from './kinds/permit/redis-permit.js';
import { RedisLink, type RedisKind } from './kinds/redis-link.js';
import { RedisKeys } from './redis-keys.js';

export interface RedisStoreOptions {
  /** Where Redis is; see {@link RedisSource}. */
  readonly redis: RedisSource;
  /** How long one command may take, connecting included, in ms. Default: 2,000. */
  readonly commandTimeoutMs?: number;
}

/** All kinds, as Redis keeps them: the compiler names the one that is missing. */
type RedisKinds = { readonly [K in LockKind]: RedisKind<ClaimOf<K>> };

/**
 * Keeps holds on one Redis server (or behind Sentinel), in Redisson's layout. Opens two connections of its own when it
 * is first asked for a lock, one for commands and one for wake-ups, and closes both.
 */
export class RedisStore implements LockStore {
  readonly kinds: RedisKinds;
  private readonly keys: RedisKeys;
  private readonly connection: RedisConnection;
  private readonly subscriber: RedisSubscriber;
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
    this.connection = new RedisConnection(commands, {
      timeoutMs,
      // All of them, also of kinds that are seldom used: one that is sent again in full would come after later ones.
      scripts: [...EXCLUSIVE_SCRIPTS, ...PERMIT_SCRIPTS],
      batchParts: EXCLUSIVE_BATCH_PARTS,
    });
    this.subscriber = new RedisSubscriber(subscriber, timeoutMs);
    const link = new RedisLink(this.connection, this.subscriber, this.keys);
    this.kinds = { exclusive: new RedisExclusive(link), permit: new RedisPermit(link) };
    // Beside the first lock, so that the first waiter finds it open.
    commands.on('connect', () => this.subscriber.open());
    this.openCheck = () => {
      const twin = twinOf(commands);
      return twin && new RedisConnection(twin, { timeoutMs });
    };
  }

  /** Number of channels this process listens to; for tests. */
  get subscriptions(): number {
    return this.subscriber.size;
  }

  checkKey(finalKey: string): void {
    this.keys.check(finalKey);
  }

  inspect(finalKey: string): Promise<KeyState | null> {
    return this.whateverIsThere((kind) => kind.inspect(finalKey));
  }

  forceUnlock(finalKey: string): Promise<boolean> {
    return this.whateverIsThere((kind) => kind.forceUnlock(finalKey));
  }

  async ping(): Promise<void> {
    await this.connection.send({ command: 'ping', args: [], read: () => undefined });
  }

  /**
   * Warns of a server that evicts locks. Who may not run INFO is told nothing. Leaves no connection open that was
   * not: an app that then fails to start would not close it.
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
   * Asks each kind whether it knows the value there. Kinds that this process uses are asked at once, in one go: so the
   * question keeps its place among the requests before and after it. The others are asked only when none of these knows
   * the value, since the Redis user may not have the right. The answer is that of the kind that found something.
   */
  private async whateverIsThere<T>(ask: (kind: RedisKind<never>) => Promise<T>): Promise<T> {
    const kinds: readonly RedisKind<never>[] = Object.values(this.kinds);
    const used = kinds.filter(({ inUse }) => inUse);
    try {
      return await firstAnswer(used.map(ask));
    } catch (failure) {
      const others = kinds.filter((kind) => !used.includes(kind));
      if (!isForeignType(failure) || others.length === 0) throw failure;
      return firstAnswer(others.map(ask)).catch((other: unknown) => {
        throw isForeignType(other) ? failure : other;
      });
    }
  }
}

/** What was found. A value of another type is no hold of a kind; when all say so, one of them is thrown. */
const firstAnswer = async <T>(asked: readonly Promise<T>[]): Promise<T> => {
  const outcomes = await Promise.allSettled(asked);
  const answers = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  if (answers.length > 0) return answers.find(Boolean) ?? answers[0]!;
  const failures = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason as Error] : []));
  throw failures.find((failure) => !isForeignType(failure)) ?? failures[0]!;
};

/** Redis has a value there that the kind does not know. */
const isForeignType = (failure: unknown): boolean =>
  failure instanceof RedisFailure && failure.cause instanceof Error && isWrongType(failure.cause);
