import type { CommandDeadlines } from '../../load/command-deadlines.js';
import { databaseOf, dropSocket, type RedisLike } from './redis-client.js';
import {
  isBusyScript,
  isNotPermitted,
  isPassing,
  isReplyError,
  RedisFailure,
  unwrapped,
} from './redis-failure.js';
import { pause } from './timers.js';

/** Pause before a server that does not execute commands yet is asked again, in ms. */
const NOT_YET_MS = 25;

/** Returns whether only PING is unknown or not permitted: the server executes other commands. */
const isOfPingOnly = (error: unknown): boolean =>
  isNotPermitted(error) || (isReplyError(error) && /^ERR unknown command/.test(error.message));

/**
 * Waits until the server of a new connection executes commands in the client's database. Resolves with the error when
 * the server refuses that, else with undefined.
 *
 * ioredis would ask with INFO, which some servers lack, and does not report their reason. It also sends SELECT. But
 * when the server refuses SELECT, ioredis goes on in database 0, where these locks exclude no other process.
 *
 * @param onNotYet receives each reply which says that the server does not execute commands yet
 */
export const openDatabase = async (
  client: RedisLike,
  life: { readonly alive: boolean },
  deadlines: CommandDeadlines,
  onNotYet: (error: unknown) => void,
): Promise<unknown> => {
  const database = databaseOf(client);
  while (life.alive) {
    const inFlight = deadlines.add(() => dropSocket(client));
    try {
      const reply = await (database === 0 ? client.call('ping') : client.call('select', database));
      return database === 0 || reply === 'OK'
        ? undefined
        : new Error('the answer to SELECT is none that Redis gives');
    } catch (error) {
      if (!isPassing(error)) return database === 0 && isOfPingOnly(error) ? undefined : error;
      onNotYet(error);
    } finally {
      inFlight.done = true;
    }
    await pause(deadlines.runtime, NOT_YET_MS, true);
  }
  return undefined;
};

/** Returns the failure of all requests while the server refuses the database. */
export const refusedDatabase = (database: number, cause: Error): RedisFailure =>
  new RedisFailure(
    `Redis refused SELECT ${database} (${unwrapped(cause.message)}), and locks are taken in no other database: ` +
      describeRemedy(cause),
    'not-executed',
    { cause, passing: isPassing(cause) },
  );

const describeRemedy = (cause: Error): string => {
  if (isBusyScript(cause)) return 'look for the script that keeps Redis busy';
  if (unwrapped(cause.message).startsWith('NOPERM')) return 'allow the user +select, or set db to 0';
  return 'set db to one that the server has';
};
