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

/**
 * Asks the server for the identity of a new connection, and loads the scripts that it lacks. All of them together are too
 * large to be sent again on each connection: on a narrow way, the renewals behind them would come too late.
 *
 * @param onReply called when a script is loaded and more of them are on their way
 */
export const nameSession = async (
  client: RedisLike,
  scripts: readonly Script[],
  deadlines: CommandDeadlines,
  onReply: () => void,
): Promise<SessionName> => {
  const startWaiting = () => deadlines.add(() => dropSocket(client));
  let inFlight = startWaiting();
  const say = (command: string, ...args: string[]): Promise<unknown> =>
    client.call(command, ...args).catch(() => undefined);
  const existing = scripts.length > 0 ? say('script', 'exists', ...scripts.map(({ sha }) => sha)) : [];
  const info = textOf(await say('client', 'info'));
  // Servers before Redis 6.2 have only CLIENT ID.
  const id = info || textOf(await say('client', 'id'));
  const exist = await existing;
  const lacking = Array.isArray(exist) ? scripts.filter((_, i) => exist[i] !== 1) : scripts;
  // Without the right to SCRIPT LOAD, the connection sends each script in full the first time, by EVAL.
  for (const loaded of lacking.map(({ source }) => say('script', 'load', source))) {
    await loaded;
    // A server that replies works, however long all of them take.
    inFlight.done = true;
    inFlight = startWaiting();
    onReply();
  }
  inFlight.done = true;
  if (!info) return { id: id || undefined, address: undefined };
  const field = (key: string) => new RegExp(`(?:^| )${key}=(\\S+)`).exec(info)?.[1];
  return { id: field('id'), address: field('addr') };
};

const textOf = (reply: unknown): string =>
  typeof reply === 'string' || typeof reply === 'number' ? `${reply}` : '';
