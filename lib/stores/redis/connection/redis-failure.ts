import { StoreFailure, type StoreOutcome } from '../../../core/seam/store-failure.js';
import type { RedisRequest } from './redis-request.js';
import type { RedisSession } from './redis-session.js';
import type { ScriptRefusal } from './script.js';

/** A failed command, with the connection it was sent on: an undo has to know. */
export class RedisFailure extends StoreFailure {
  constructor(
    message: string,
    outcome: StoreOutcome,
    options: {
      cause?: unknown;
      transient?: boolean;
      passing?: boolean;
      keyOnly?: boolean;
      claimOnly?: boolean;
    },
    /** Undefined when the command was never sent. */
    readonly session?: RedisSession,
  ) {
    super(message, outcome, options);
  }
}

/** Replies of a cluster that is moving slots: certainly not executed, and different in a moment. */
const MOVING = /^(TRYAGAIN|MOVED|ASK|CLUSTERDOWN)\b/;

/** A slot's keys moved while a script was running there: what it did before that is done. */
const MOVED_WITHIN = /Script attempted to access a non local key|while the cluster is down/;

/** How servers before Redis 7 hand on what went wrong inside of a script. */
const WRAPPING = /^(?:ERR )?(?:Error running script \(call to f_\w+\): )?(?:@\w+: ?\d+: )+-?/;
/** Where in the script it was, as servers from Redis 7 on add it. */
const PLACE = /,? script: \w+, on @\w+: ?\d+\.?$/;

/** What went wrong inside of a script, without what the server has put around it. */
export const unwrapped = (message: string): string => message.replace(WRAPPING, '').replace(PLACE, '');

/**
 * Replies of a server that may answer otherwise without anything being changed there. MISCONF and OOM are not among them:
 * an operator has to free the disk or the memory.
 */
const PASSING =
  /^(?:(?:BUSY|LOADING|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|READONLY|NOREPLICAS)\b|ERR max number of clients reached)/;

export const isReplyError = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'ReplyError';

/** An error that came inside another reply, as the client would have made it. */
export const replyError = (message: string): Error =>
  Object.assign(new Error(message), { name: 'ReplyError' });

const isReply = (error: unknown, word: string): boolean =>
  isReplyError(error) && unwrapped(error.message).startsWith(word);

export const isNoScript = (error: unknown): boolean => isReply(error, 'NOSCRIPT');

/** Somebody's script runs for so long that the server does nothing else. */
export const isBusyScript = (error: unknown): boolean => isReply(error, 'BUSY');

/** The server refuses for now, whatever it is asked. */
export const isPassing = (error: unknown): boolean =>
  isReplyError(error) && PASSING.test(unwrapped(error.message));

/**
 * Whether a server that cannot be reached for this reason may be reached again without anything being changed: always,
 * unless the server itself refuses the connection, for a wrong password for example.
 */
export const mayReconnect = (cause: unknown): boolean => !isReplyError(cause) || isPassing(cause);

/** Why there is no connection yet: the server's own reason, where there is a server that gives one. */
export const notReady = (cause: Error | undefined, timeoutMs: number): string =>
  isReplyError(cause)
    ? `Redis was not ready within ${timeoutMs} ms: ${unwrapped(cause.message)}`
    : `there was no connection to Redis within ${timeoutMs} ms`;

/** A command that was sent has no reply within the time-out. */
export const unanswered = (
  timeoutMs: number,
  cause: Error | undefined,
  session: RedisSession,
): RedisFailure =>
  new RedisFailure(
    `Redis did not answer within ${timeoutMs} ms`,
    'unknown',
    { cause, passing: true },
    session,
  );

/** ioredis has sent nothing: the connection is ending, and nothing that is sent on it will be. */
export const isUnwritable = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith("Stream isn't writeable");

/** Another type of value is where the hold of a lock belongs, so there is no hold. */
export const isWrongType = (error: unknown): boolean => isReply(error, 'WRONGTYPE');

/** This Redis user may not use a command, a key or a channel; the others are what scripts are told, by older and newer servers. */
const NO_PERMISSION = /^NOPERM\b|^(?:ERR )?(?:The user executing the script |ACL failure in script)/;

/** Whether a failure, or an error of the client, says that the Redis user has not the right. */
export const isNotPermitted = (error: unknown): boolean => {
  const cause = error instanceof StoreFailure ? error.cause : error;
  return isReplyError(cause) && NO_PERMISSION.test(unwrapped(cause.message));
};

/** Translates what ioredis rejected a command with. `clean` makes the copy that may be shown. */
export const failureOf = (
  error: unknown,
  session: RedisSession,
  clean: (error: unknown) => Error,
  { keys = [], refusals = [] }: Pick<RedisRequest<unknown>, 'keys' | 'refusals'> = {},
): RedisFailure => {
  const message = error instanceof Error ? error.message : String(error);
  const cause = clean(error);
  if (isReplyError(error)) {
    // The message has the reply: the log need not repeat it with what the server puts around it.
    cause.message = unwrapped(cause.message);
    const reply = unwrapped(message);
    if (MOVED_WITHIN.test(message)) {
      const why =
        'the slot of the key began to move, or the cluster failed, while the script was running there';
      return new RedisFailure(why, 'unknown', { cause, transient: true }, session);
    }
    const refusal = refusals.find(({ word }) => reply.startsWith(`${word} `));
    const isForeign = reply.startsWith('WRONGTYPE');
    return new RedisFailure(
      describeReply(cause.message, isForeign, refusal, keys),
      'not-executed',
      {
        cause,
        transient: MOVING.test(reply),
        passing: isPassing(error),
        keyOnly: isForeign || (refusal?.keyOnly ?? false),
        claimOnly: refusal?.claimOnly ?? false,
      },
      session,
    );
  }
  if (isUnwritable(error)) {
    return new RedisFailure('the connection to Redis is down', 'not-executed', { cause, passing: true });
  }
  return new RedisFailure(
    'the connection to Redis was lost before the answer came',
    'unknown',
    { cause, passing: true },
    session,
  );
};

const describeReply = (
  shown: string,
  isForeign: boolean,
  refusal: ScriptRefusal | undefined,
  keys: readonly string[],
): string => {
  if (isForeign && keys.length > 0) {
    return `Redis has something of another type at ${keys.map((key) => `"${key}"`).join(' or ')}: ${shown}`;
  }
  if (refusal?.plain) return shown.slice(refusal.word.length + 1);
  const meaning = MEANINGS.find(([reply]) => reply.test(shown))?.[1];
  return `Redis refused the command: ${shown}${meaning ? ` (${meaning})` : ''}`;
};

/** What a reply means for who has to set it right. */
const MEANINGS: readonly (readonly [RegExp, string])[] = [
  [
    /^MOVED /,
    'another server of a Redis Cluster has the slot of this key; where redis is one address, give redis: { cluster: [that address] }',
  ],
  [
    /cluster support disabled/,
    'the server is in no Redis Cluster, although redis.cluster names it; give its address by itself',
  ],
];
