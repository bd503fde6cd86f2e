import { StoreFailure, type StoreOutcome } from '../../../core/seam/store-failure.js';
import { OWN_PREFIX } from '../../key-rule.js';
import type { RedisSession } from './redis-session.js';
import type { ScriptRefusal, RedisRequest } from './script.js';

/** A failed command, with the connection on which it was sent: an undo needs it. */
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
    /** Connection of the command; undefined when the command was never sent. */
    readonly session?: RedisSession,
  ) {
    super(message, outcome, options);
  }
}

/** Prefix of the names of fences, which contain a slot and no key. */
const FENCES = `${OWN_PREFIX}fence:`;

/** Replies of a cluster that is moving slots. The command was certainly not executed, and may succeed soon. */
const MOVING = /^(TRYAGAIN|MOVED|ASK|CLUSTERDOWN)\b/;

/** Errors of a script whose slot moved while it ran: its earlier commands have been executed. */
const MOVED_WITHIN = /Script attempted to access a non local key|while the cluster is down/;

/** Text that servers before Redis 7 put before the error of a script. */
const WRAPPING = /^(?:ERR )?(?:Error running script \(call to f_\w+\): )?(?:@\w+: ?\d+: )+-?/;
/** Place in the script, which servers from Redis 7 on append to the error. */
const PLACE = /,? script: \w+, on @\w+: ?\d+\.?$/;

/** Removes what the server has put around the error of a script. */
export const unwrapped = (message: string): string => message.replace(WRAPPING, '').replace(PLACE, '');

/**
 * Replies of a server that may reply otherwise later, without any intervention. MISCONF and OOM are not among them: an
 * operator has to free the disk or the memory.
 */
const PASSING =
  /^(?:(?:BUSY|LOADING|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|READONLY|NOREPLICAS)\b|ERR max number of clients reached)/;

export const isReplyError = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'ReplyError';

/** Makes an error of a message inside another reply, as the client would. */
export const replyError = (message: string): Error =>
  Object.assign(new Error(message), { name: 'ReplyError' });

const isReply = (error: unknown, word: string): boolean =>
  isReplyError(error) && unwrapped(error.message).startsWith(word);

export const isNoScript = (error: unknown): boolean => isReply(error, 'NOSCRIPT');

/** Returns whether the server executes nothing else, because a script has run for too long. */
export const isBusyScript = (error: unknown): boolean => isReply(error, 'BUSY');

/** Returns whether the server refuses only for now, whatever the command. */
export const isPassing = (error: unknown): boolean =>
  isReplyError(error) && PASSING.test(unwrapped(error.message));

/**
 * Returns whether a server that cannot be reached for this reason may be reached later without any intervention. It
 * may, unless the server itself refuses the connection, for a wrong password for example.
 */
export const mayReconnect = (cause: unknown): boolean => !isReplyError(cause) || isPassing(cause);

/** Returns why there is no connection yet: the server's own reason, if it gives one. */
export const notReady = (cause: Error | undefined, timeoutMs: number): string =>
  isReplyError(cause)
    ? `Redis was not ready within ${timeoutMs} ms: ${unwrapped(cause.message)}`
    : `there was no connection to Redis within ${timeoutMs} ms`;

/** Returns the failure of a command that waited for its connection while the server was replying: that is no outage. */
export const stillLoading = (): RedisFailure =>
  new RedisFailure(
    'the scripts of the locks were still on their way to Redis: that way is narrow',
    'not-executed',
    { transient: true },
  );

/** Failure of a request whose reply no script can have given. */
export const unreadable = (cause: unknown, session: RedisSession): RedisFailure =>
  new RedisFailure(
    'the answer is none that Redis gives; look at what is in its place, or in between',
    'unknown',
    { cause },
    session,
  );

/** Returns the failure of a command that was sent and has no reply within the time-out. */
export const timedOut = (timeoutMs: number, cause: Error | undefined, session: RedisSession): RedisFailure =>
  new RedisFailure(
    `Redis did not answer within ${timeoutMs} ms`,
    'unknown',
    { cause, passing: true },
    session,
  );

/** Returns whether ioredis sent nothing, because the connection is ending. Nothing later will be sent on it either. */
export const isUnwritable = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith("Stream isn't writeable");

/** Returns whether the key has a value of another type, so that there is no hold. */
export const isWrongType = (error: unknown): boolean => isReply(error, 'WRONGTYPE');

/** Errors of a missing right. The alternatives are the errors that older and newer servers give to scripts. */
const NO_PERMISSION = /^NOPERM\b|^(?:ERR )?(?:The user executing the script |ACL failure in script)/;

/** Returns whether a failure, or an error of the client, says that the Redis user lacks a right. */
export const isNotPermitted = (error: unknown): boolean => {
  const cause = error instanceof StoreFailure ? error.cause : error;
  return isReplyError(cause) && NO_PERMISSION.test(unwrapped(cause.message));
};

/** Translates the error with which ioredis rejected a command. `clean` makes the copy for logs and callers. */
export const failureOf = (
  error: unknown,
  session: RedisSession,
  clean: (error: unknown) => Error,
  { keys = [], refusals = [] }: Pick<RedisRequest<unknown>, 'keys' | 'refusals'> = {},
): RedisFailure => {
  const message = error instanceof Error ? error.message : String(error);
  const cause = clean(error);
  if (isReplyError(error)) {
    // The failure's message quotes the reply, so that the cause need not repeat what the server puts around it.
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
    // The other names contain the key, which the core shows or redacts.
    const names = keys.map((name) => (name.startsWith(FENCES) ? `"${name}"` : 'a name of the key'));
    return `Redis has something of another type at ${[...new Set(names)].join(' or ')}: ${shown}`;
  }
  if (refusal?.plain) return shown.slice(refusal.word.length + 1);
  const meaning = MEANINGS.find(([reply]) => reply.test(shown))?.[1];
  return `Redis refused the command: ${shown}${meaning ? ` (${meaning})` : ''}`;
};

/** Meanings of replies, for operators. */
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
