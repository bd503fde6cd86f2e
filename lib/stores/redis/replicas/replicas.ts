import { LockConfigurationError } from '../../../core/errors/lock.errors.js';
import { isArray } from '../../../core/errors/describe.js';
import { checkMs, reading, refuse } from '../../../core/settings/option-checks.js';
import { checkNames } from '../../../core/settings/option-names.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { RedisFailure } from '../connection/redis-failure.js';
import type { RedisSession } from '../connection/redis-session.js';
import { impossible } from '../connection/strict-replies.js';
import type { RedisLink } from '../kinds/redis-link.js';

/** How many replicas have to have a hold before it counts. */
export interface ReplicasOptions {
  /** So many replicas have to acknowledge it: a whole number, at least 1. */
  readonly min: number;
  /** How long they are waited for, in ms. Default: 100. Less than `commandTimeoutMs`, which is the most for any command. */
  readonly timeoutMs?: number;
}

const DEFAULT_TIMEOUT_MS = 100;

/** Checks the option; undefined when it is not given. */
export const resolveReplicas = (
  given: unknown,
  commandTimeoutMs: number,
): Required<ReplicasOptions> | undefined => {
  if (given === undefined) return undefined;
  if (typeof given !== 'object' || given === null || isArray(given)) {
    return refuse('replicas', 'an object such as { min: 1 }', given);
  }
  const { min, timeoutMs } = reading('replicas', () => {
    checkNames(given, 'replicas', { min: true, timeoutMs: true });
    const { min, timeoutMs } = given as Partial<ReplicasOptions>;
    return { min, timeoutMs };
  });
  if (!Number.isInteger(min) || min! < 1 || min! > 100) {
    return refuse('replicas.min', 'a whole number from 1 to 100', min);
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

/** What is asked of the replicas in one go. */
interface Question {
  readonly session: RedisSession;
  readonly answer: Promise<void>;
}

/** Waits until replicas have what was written, at the servers that have the keys. */
export class Replicas {
  private readonly masters = new WeakMap<RedisConnection, MasterOfReplicas>();

  constructor(
    private readonly link: RedisLink,
    private readonly options: Required<ReplicasOptions>,
  ) {}

  /**
   * To be called before something is asked of the key; what it gives, when it is answered. That resolves once enough replicas
   * have it. Else it fails with an outcome that is unknown: the server has it, and has to be asked to undo it. So it does
   * when the connection is another one by then, or the key is on another server: there nothing can be said of it.
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
 * One server and what its replicas have. WAIT goes by the connection: it answers for all that was written on it
 * before. While one is under way, those who come meanwhile share the next.
 */
class MasterOfReplicas {
  private underWay: Promise<unknown> = Promise.resolve();
  private next: Question | undefined;

  constructor(
    private readonly connection: RedisConnection | undefined,
    private readonly options: Required<ReplicasOptions>,
  ) {}

  /** @param session on which the answer came. */
  confirm(session: RedisSession | undefined): Promise<void> {
    const { connection } = this;
    if (!connection || !session || connection.current !== session)
      return Promise.reject(this.failure('the connection to Redis was lost before they could'));
    if (this.next?.session === session) return this.next.answer;
    const answer = this.underWay.then(() => {
      if (this.next === question) this.next = undefined;
      const asked = this.ask(connection, session);
      this.underWay = asked.catch(() => undefined);
      return asked;
    });
    const question: Question = { session, answer };
    return (this.next = question).answer;
  }

  private async ask(connection: RedisConnection, session: RedisSession): Promise<void> {
    const { min, timeoutMs } = this.options;
    // Answers that came in together are all asked about by one.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    if (connection.current !== session) {
      throw this.failure('the connection to Redis was lost before they could', { session });
    }
    let acknowledged: number;
    try {
      // On another connection nothing was written, and all replicas have that.
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
 * What to tell of a server that has too few replicas now; undefined when it has enough, or does not say.
 *
 * @param replication the reply of INFO replication.
 */
export const replicasWarning = (replication: string, min: number): string | undefined => {
  const connected = /^connected_slaves:(\d+)/m.exec(replication)?.[1];
  if (connected === undefined || Number(connected) >= min) return undefined;
  return (
    `replicas.min is ${min}, but Redis has ${connected} replicas connected: no lock can be taken until it has more. ` +
    'Start them, or ask for fewer.'
  );
};
