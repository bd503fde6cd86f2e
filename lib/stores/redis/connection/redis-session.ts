import type { CommandDeadlines } from '../../load/command-deadlines.js';
import { dropSocket, type RedisLike } from './redis-client.js';
import type { Script } from './script.js';

/** Identity of a connection at its server. */
interface SessionName {
  /** Id of the connection; undefined when the server does not tell it. */
  readonly id: string | undefined;
  /** Client address as the server sees it. Id and address together name one connection and no other. */
  readonly address: string | undefined;
}

/** One connection of a client, from its handshake to its end. */
export interface RedisSession extends SessionName {
  /** `id` of the `RedisConnection` that it belongs to. */
  readonly of: symbol;
  alive: boolean;
}

/** Asks the server for the identity of a new connection, and loads the scripts. */
export const nameSession = async (
  client: RedisLike,
  scripts: readonly Script[],
  deadlines: CommandDeadlines,
): Promise<SessionName> => {
  const inFlight = deadlines.add(() => dropSocket(client));
  const say = (command: string, ...args: string[]): Promise<string> =>
    client.call(command, ...args).then(
      (reply) => (typeof reply === 'string' || typeof reply === 'number' ? `${reply}` : ''),
      () => '',
    );
  // Without the right to SCRIPT LOAD, the connection sends each script in full the first time, by EVAL.
  const loads = scripts.map(({ source }) => say('script', 'load', source));
  const info = await say('client', 'info');
  // Servers before Redis 6.2 have only CLIENT ID.
  const id = info || (await say('client', 'id'));
  await Promise.all(loads);
  inFlight.done = true;
  if (!info) return { id: id || undefined, address: undefined };
  const field = (key: string) => new RegExp(`(?:^| )${key}=(\\S+)`).exec(info)?.[1];
  return { id: field('id'), address: field('addr') };
};
