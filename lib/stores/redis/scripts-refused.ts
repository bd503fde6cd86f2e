import { RedisFailure, isReplyError, unwrapped } from './connection/redis-failure.js';
import type { RedisConnection } from './connection/redis-connection.js';
import { Script } from './connection/script.js';

const NOTHING = new Script('return 1');

/** Resolves with the warning about a server that runs no scripts for this user; undefined when it runs them. */
export const scriptsWarning = async (connection: RedisConnection): Promise<string | undefined> => {
  await connection.load(NOTHING);
  const refusal = await refusalOf(connection.run(NOTHING, [], [], () => undefined));
  if (refusal === undefined) return undefined;
  return (
    `Redis runs no scripts (${refusal}), and every lock is taken by one: no lock can be acquired here. Allow the user ` +
    `+eval and +evalsha, or use a Redis whose vendor has not taken these commands away.`
  );
};

/** Resolves with the text of the server's refusal. Throws other failures: they say nothing about scripts. */
const refusalOf = async (request: Promise<unknown>): Promise<string | undefined> => {
  try {
    await request;
    return undefined;
  } catch (failure) {
    if (failure instanceof RedisFailure && isReplyError(failure.cause) && !failure.passing)
      return unwrapped(failure.cause.message);
    throw failure;
  }
};
