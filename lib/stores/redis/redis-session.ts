import { setTimeout as pause } from 'node:timers/promises';
import type { CommandDeadlines } from './command-deadlines.js';
import { databaseOf, dropSocket, type RedisLike } from './redis-client.js';
import { isBusy } from './redis-failure.js';
import type { Script } from './script.js';

/** How soon a server that is busy with somebody's script is asked again, in ms. */
const BUSY_RETRY_MS = 25;

/** How the server knows a connection. */
interface SessionName {
  /** How the server names this connection; undefined when it would not say. */
  readonly id: string | undefined;
  /** Its address as the server sees it: with the id it names this connection and no other. */
  readonly address: string | undefined;
}

/** One life of the connection. */
export interface RedisSession extends SessionName {
  alive: boolean;
}

/** Asks for the name of a new connection, and makes the scripts known to its server. */
export const nameSession = async (
  client: RedisLike,
  scripts: readonly Script[],
  deadlines: CommandDeadlines,
): Promise<SessionName> => {
  const inFlight = deadlines.add(() => dropSocket(client));
  const ask = (command: string, ...args: string[]): Promise<string> =>
    client.call(command, ...args).then(
      (reply) => (typeof reply === 'string' || typeof reply === 'number' ? `${reply}` : ''),
      () => '',
    );
  // Who may not do this sends each script in full once.
  const loads = scripts.map(({ source }) => ask('script', 'load', source));
  const info = await ask('client', 'info');
  // Before Redis 6.2 there is only the id.
  const id = info || (await ask('client', 'id'));
  await Promise.all(loads);
  inFlight.done = true;
  if (!info) return { id: id || undefined, address: undefined };
  const field = (key: string) => new RegExp(`(?:^| )${key}=(\\S+)`).exec(info)?.[1];
  return { id: field('id'), address: field('addr') };
};

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
      if (!isBusy(error) || !life.alive || performance.now() >= giveUpAt) return error;
      onBusy(error);
    } finally {
      inFlight.done = true;
    }
    await pause(BUSY_RETRY_MS, undefined, { ref: false });
    if (!life.alive) return undefined;
  }
};
