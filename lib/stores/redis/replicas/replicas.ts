import { LockConfigurationError } from '../../../core/errors/lock.errors.js';
import { isArray } from '../../../core/util/describe.js';
import { checkMs, reading, invalidOption } from '../../../core/settings/option-checks.js';
import { checkNames } from '../../../core/settings/option-names.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { RedisFailure } from '../connection/redis-failure.js';
import type { RedisSession } from '../connection/redis-session.js';
import { impossible } from '../connection/strict-replies.js';
import type { RedisLink } from '../kinds/redis-link.js';

/** How many replicas must acknowledge a hold before it counts. */
export interface ReplicasOptions {
  /** Minimum number of replicas: a whole number from 1 to 100. */
  readonly min: number;
  /** Time to wait for the replicas, in ms; less than `commandTimeoutMs`. Default: 100. */
  readonly timeoutMs?: number | undefined;
}

const DEFAULT_TIMEOUT_MS = 100;

/**
 * Checks the option; returns undefined when it is not given.
 *
 * @throws {LockConfigurationError} when it is invalid
 */
export const resolveReplicas = (
  given: unknown,
  commandTimeoutMs: number,
): Required<ReplicasOptions> | undefined => {
  if (given === undefined) return undefined;
  if (typeof given !== 'object' || given === null || isArray(given)) {
    return invalidOption('replicas', 'an object such as { min: 1 }', given);
  }
  const { min, timeoutMs } = reading('replicas', () => {
    checkNames(given, 'replicas', { min: true, timeoutMs: true });
    const { min, timeoutMs } = given as Partial<ReplicasOptions>;
    return { min, timeoutMs };
  });
  if (!Number.isInteger(min) || min! < 1 || min! > 100) {
    return invalidOption('replicas.min', 'a whole number from 1 to 100', min);
  }
  if (commandTimeoutMs < 2) {
    throw new LockConfigurationError('replicas needs a commandTimeoutMs of at least 2.');
  }
  const most = commandTimeoutMs - 1;
  return {
    min: min!,
    timeoutMs:
      checkMs('replicas.timeoutMs', timeoutMs, { min: 1, max: most }) ?? Math.min(DEFAULT_TIMEOUT_MS, most),
  };
};

/** One WAIT, which several callers may share. */
interface PendingWait {
  readonly session: RedisSession;
  readonly reply: Promise<void>;
}

/** Waits until replicas have the writes, at the servers that have the keys. */
export class Replicas {
  private readonly masters = new WeakMap<RedisConnection, MasterOfReplicas>();

  constructor(
    private readonly link: RedisLink,
    private readonly options: Required<ReplicasOptions>,
  ) {}

  /**
   * Call this before the request for the key, and the returned function after its reply. That function resolves once
   * enough replicas have the write.
   *
   * Otherwise it rejects with an unknown outcome: the server has the write, and an undo has to follow. So it does when
   * there is another connection by then, or when the key has moved: nothing is certain there.
   */
  confirming(finalKey: string): () => Promise<void> {
    const { topology, keys } = this.link;
    const name = keys.name(finalKey);
    const before = topology.connectionTo(name)?.current;
    return () => {
      const connection = topology.connectionTo(name);
      return this.masterOf(connection).confirm(before ?? connection?.current);
    };
  }

  private masterOf(connection: RedisConnection | undefined): MasterOfReplicas {
    const known = connection && this.masters.get(connection);
    if (known) return known;
    const master = new MasterOfReplicas(connection, this.options);
    if (connection) this.masters.set(connection, master);
    return master;
  }
}

/**
 * One server and its replicas. WAIT counts by connection: it covers everything written on it before. While one WAIT is
 * under way, later callers share the next one.
 */
class MasterOfReplicas {
  private underWay: Promise<unknown> = Promise.resolve();
  private next: PendingWait | undefined;

  constructor(
    private readonly connection: RedisConnection | undefined,
    private readonly options: Required<ReplicasOptions>,
  ) {}

  /**  @param session session on which the reply came */
  confirm(session: RedisSession | undefined): Promise<void> {
    const { connection } = this;
    if (!connection || !session || connection.current !== session)
      return Promise.reject(this.failure('the connection to Redis was lost before they could'));
    if (this.next?.session === session) return this.next.reply;
    const reply = this.underWay.then(() => {
      if (this.next === request) this.next = undefined;
      const requested = this.request(connection, session);
      this.underWay = requested.catch(() => undefined);
      return requested;
    });
    const request: PendingWait = { session, reply };
    return (this.next = request).reply;
  }

  private async request(connection: RedisConnection, session: RedisSession): Promise<void> {
    const { min, timeoutMs } = this.options;
    // Replies that came in together share one WAIT.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    if (connection.current !== session) {
      throw this.failure('the connection to Redis was lost before they could', { session });
    }
    let acknowledged: number;
    try {
      // On another connection nothing was written, so all replicas would acknowledge at once.
      const wait = { command: 'wait', args: [min, timeoutMs], read: readCount };
      acknowledged = await connection.sendOnlyOn(session, wait);
    } catch (cause) {
      throw this.failure(cause instanceof Error ? cause.message : String(cause), { session, cause });
    }
    if (acknowledged < min) {
      throw this.failure(`${acknowledged} did within ${timeoutMs} ms`, { session });
    }
  }

  private failure(
    why: string,
    { session, cause }: { session?: RedisSession; cause?: unknown } = {},
  ): RedisFailure {
    const { min } = this.options;
    const wanted = min === 1 ? '1 replica has' : `${min} replicas have`;
    const passing = !(cause instanceof RedisFailure) || cause.passing;
    return new RedisFailure(
      `${wanted} to acknowledge it, but ${why}`,
      'unknown',
      { cause, passing },
      session,
    );
  }
}

const readCount = (reply: unknown): number => {
  if (Number.isInteger(reply) && (reply as number) >= 0) return reply as number;
  throw impossible(reply);
};

/**
 * Returns the warning about a server that has too few replicas now; undefined when it has enough, or does not tell.
 *
 * @param replication reply of INFO replication
 */
export const replicasWarning = (replication: string, min: number): string | undefined => {
  const connected = /^connected_slaves:(\d+)/m.exec(replication)?.[1];
  if (connected === undefined || Number(connected) >= min) return undefined;
  return (
    `replicas.min is ${min}, but Redis has ${connected} replicas connected: no lock can be taken until it has more. ` +
    'Start them, or ask for fewer.'
  );
};
