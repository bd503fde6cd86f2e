import { setTimeout as pause } from 'node:timers/promises';
import type { CommandDeadlines } from './command-deadlines.js';
import { databaseOf, dropSocket, type RedisLike } from './redis-client.js';
import {
  isBusyScript,
  isNotPermitted,
  isPassing,
  isReplyError,
  RedisFailure,
  unwrapped,
} from './redis-failure.js';

/** How soon a server that does not execute commands yet is asked again, in ms. */
const NOT_YET_MS = 25;

/** Whether the server only does not have PING, or not for this user: it executes other commands. */
const isOfPingOnly = (error: unknown): boolean =>
  isNotPermitted(error) || (isReplyError(error) && /^ERR unknown command/.test(error.message));

/**
 * Waits until the server of a new connection executes commands, in the client's database; answers the error when that is
 * refused. ioredis asks INFO for the first, which some servers lack, and keeps their reason to itself. It has asked for the
 * database, too, but when its SELECT is refused it goes on in database 0, where these locks exclude nobody.
 *
 * @param onNotYet receives each reply that says that the server does not execute commands yet
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
    await pause(NOT_YET_MS, undefined, { ref: false });
  }
  return undefined;
};

/** The failure of everything that is asked while the server refuses the database. */
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
