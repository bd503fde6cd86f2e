import { StoreFailure, type StoreOutcome } from '../../core/lock-store.js';
import type { RedisSession } from './redis-session.js';

/** A failed command, with the connection it was sent on: an undo has to know. */
export class RedisFailure extends StoreFailure {
  constructor(
    message: string,
    outcome: StoreOutcome,
    options: { cause?: unknown; transient?: boolean; keyOnly?: boolean },
    /** Undefined when the command was never sent. */
    readonly session?: RedisSession,
  ) {
    super(message, outcome, options);
  }
}

/** Replies of a cluster that is moving slots: certainly not executed, and different in a moment. */
const MOVING = /^(TRYAGAIN|MOVED|ASK|CLUSTERDOWN)\b/;

/** A value that is not ours has the key's name, or the fence key's. */
const FOREIGN = /^(WRONGTYPE|FENCE)\b/;

export const isReplyError = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'ReplyError';

/** An error that came inside another reply, as the client would have made it. */
export const replyError = (message: string): Error =>
  Object.assign(new Error(message), { name: 'ReplyError' });

export const isNoScript = (error: unknown): boolean =>
  isReplyError(error) && error.message.startsWith('NOSCRIPT');

/** A master that became a replica: the way to the new master is a new connection. */
export const isReadOnly = (error: unknown): boolean =>
  isReplyError(error) && error.message.startsWith('READONLY');

/** Translates what ioredis rejected a command with. */
export const failureOf = (error: unknown, session: RedisSession): RedisFailure => {
  const message = error instanceof Error ? error.message : String(error);
  if (isReplyError(error)) {
    return new RedisFailure(
      `Redis refused the command: ${message}`,
      'not-executed',
      { cause: error, transient: MOVING.test(message), keyOnly: FOREIGN.test(message) },
      session,
    );
  }
  if (message.startsWith("Stream isn't writeable")) {
    return new RedisFailure('the connection to Redis is down', 'not-executed', { cause: error });
  }
  return new RedisFailure(
    'the connection to Redis was lost before the answer came',
    'unknown',
    { cause: error },
    session,
  );
};
