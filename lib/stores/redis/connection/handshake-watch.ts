import type { CommandDeadlines, PendingCommand } from '../../load/command-deadlines.js';
import {
  bytesReceived,
  dropSocket,
  dropWhereParserThrows,
  isReadyInVain,
  type RedisLike,
} from './redis-client.js';

/**
 * Drops a connection that falls silent after it was opened and before it is ready. For the commands of its handshake
 * ioredis has no time-out: it would wait without end for the reply, and never reconnect. A server that still sends
 * bytes, because it loads its data for example, keeps its connection. Bytes that the parser cannot read end it.
 *
 * @param onReady called for each connection that is ready
 */
export const watchHandshakes = (
  client: RedisLike,
  deadlines: CommandDeadlines,
  onReady: () => void,
): void => {
  let current: PendingCommand | undefined;
  const stop = (): void => {
    if (current) current.done = true;
    current = undefined;
  };
  const watch = (receivedBefore: number): void => {
    const handshake: PendingCommand = deadlines.add(() => {
      handshake.done = true;
      const received = bytesReceived(client);
      if (received > receivedBefore) watch(received);
      else dropSocket(client);
    });
    current = handshake;
  };
  client.on('connect', () => {
    dropWhereParserThrows(client);
    stop();
    watch(bytesReceived(client));
  });
  client.on('ready', () => {
    stop();
    if (!isReadyInVain(client)) onReady();
  });
  client.on('close', stop);
  client.on('end', stop);
};
