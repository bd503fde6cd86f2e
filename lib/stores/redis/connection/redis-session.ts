import type { CommandDeadlines } from './command-deadlines.js';
import { dropSocket, type RedisLike } from './redis-client.js';
import type { Script } from './script.js';

/** How the server knows a connection. */
interface SessionName {
  /** How the server names this connection; undefined when it would not say. */
  readonly id: string | undefined;
  /** Its address as the server sees it: with the id it names this connection and no other. */
  readonly address: string | undefined;
}

/** One life of the connection. */
export interface RedisSession extends SessionName {
  /** The connection that it is a life of: its `id`. */
  readonly of: symbol;
  alive: boolean;
}

/** Asks for the name of a new connection, makes the scripts known to its server, and awaits what else is sent there. */
export const nameSession = async (
  client: RedisLike,
  scripts: readonly Script[],
  deadlines: CommandDeadlines,
  sendMore: () => Promise<unknown>,
): Promise<SessionName> => {
  const inFlight = deadlines.add(() => dropSocket(client));
  const say = (command: string, ...args: string[]): Promise<string> =>
    client.call(command, ...args).then(
      (reply) => (typeof reply === 'string' || typeof reply === 'number' ? `${reply}` : ''),
      () => '',
    );
  // A user without permission for SCRIPT LOAD has each script sent in full the first time, by EVAL.
  const loads = scripts.map(({ source }) => say('script', 'load', source));
  const more = sendMore();
  const info = await say('client', 'info');
  // Before Redis 6.2 there is only the id.
  const id = info || (await say('client', 'id'));
  await Promise.all([...loads, more]);
  inFlight.done = true;
  if (!info) return { id: id || undefined, address: undefined };
  const field = (key: string) => new RegExp(`(?:^| )${key}=(\\S+)`).exec(info)?.[1];
  return { id: field('id'), address: field('addr') };
};
