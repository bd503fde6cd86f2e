import type { CommandDeadlines, Unanswered } from './command-deadlines.js';
import { bytesHeard, dropSocket, isReadyInVain, type RedisLike } from './redis-client.js';

/**
 * Gives up a connection that falls silent after it was opened and before it is ready. The client does not: what the
 * client asks for itself then has no time-out, so it would wait for that answer for ever, and never connect again.
 * One that goes on answering (a server that loads its data) is left alone.
 *
 * @param onReady called for each connection that is ready
 */
export const watchHandshakes = (
  client: RedisLike,
  deadlines: CommandDeadlines,
  onReady: () => void,
): void => {
  let current: Unanswered | undefined;
  const stop = (): void => {
    if (current) current.done = true;
    current = undefined;
  };
  const watch = (heardBefore: number): void => {
    const handshake: Unanswered = deadlines.add(() => {
      handshake.done = true;
      const heard = bytesHeard(client);
      if (heard > heardBefore) watch(heard);
      else dropSocket(client);
    });
    current = handshake;
  };
  client.on('connect', () => {
    stop();
    watch(bytesHeard(client));
  });
  client.on('ready', () => {
    stop();
    if (!isReadyInVain(client)) onReady();
  });
  client.on('close', stop);
  client.on('end', stop);
};
