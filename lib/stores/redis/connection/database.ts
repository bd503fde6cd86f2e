import { setTimeout as pause } from 'node:timers/promises';
import type { CommandDeadlines } from './command-deadlines.js';
import { databaseOf, dropSocket, type RedisLike } from './redis-client.js';
import { isBusyScript, isPassing, RedisFailure, unwrapped } from './redis-failure.js';

/** How soon a server that is busy with somebody's script is asked again, in ms. */
const BUSY_RETRY_MS = 25;

/**
 * Chooses the client's database on a new connection; answers the error when that is refused. The client has asked for
 * it before, but when its SELECT is refused ioredis goes on in database 0, where these locks exclude nobody.
 */
export const chooseDatabase = async (
  client: RedisLike,
  life: { readonly alive: boolean },
  deadlines: CommandDeadlines,
  timeoutMs: number,
  onBusy: (error: unknown) => void,
): Promise<unknown> => {
  const database = databaseOf(client);
  if (database === 0) return undefined;
  const giveUpAt = performance.now() + timeoutMs;
  for (;;) {
    const inFlight = deadlines.add(() => dropSocket(client));
    try {
      const reply = await client.call('select', database);
      return reply === 'OK' ? undefined : new Error('the answer to SELECT is none that Redis gives');
    } catch (error) {
      if (!isBusyScript(error) || !life.alive || performance.now() >= giveUpAt) return error;
      onBusy(error);
    } finally {
      inFlight.done = true;
    }
    await pause(BUSY_RETRY_MS, undefined, { ref: false });
    if (!life.alive) return undefined;
  }
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
