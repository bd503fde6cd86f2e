import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

export const LOOPBACK = '127.0.0.1';

// Below the range that systems take outgoing ports from. A client that keeps reconnecting to a stopped server's port
// inside that range can be given that very port for itself, and is then connected to itself.
const LOWEST = 15_000;
const HIGHEST = 32_000;
/** The servers of a Redis Cluster talk to each other on a port that is so much higher. */
const BUS_DISTANCE = 10_000;
const ATTEMPTS = 50;

/** Listens on a free port of the loopback interface that no outgoing connection takes. */
export async function listenOnFreePort(server: Server, below = HIGHEST): Promise<number> {
  for (let attempt = 1; ; attempt += 1) {
    const port = randomInt(LOWEST, below);
    try {
      await listen(server, port);
      return port;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || attempt === ATTEMPTS) throw error;
    }
  }
}

export function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host: LOOPBACK }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** A port that is free now. Somebody may take it before it is used: whoever binds it has to be ready to try another. */
export async function freePort({ withBus = false } = {}): Promise<number> {
  const probe = createServer();
  const port = await listenOnFreePort(probe, withBus ? HIGHEST - BUS_DISTANCE : HIGHEST);
  await new Promise<void>((resolve) => probe.close(() => resolve()));
  return port;
}

/** Resolves when a port accepts a connection; rejects when it does not. */
export async function accepts(port: number): Promise<void> {
  const socket = connect({ host: LOOPBACK, port });
  try {
    await once(socket, 'connect');
  } finally {
    socket.destroy();
  }
}

/**
 * Ends a connection with a reset, so that the other side sees an error. One that is ending already is closed instead:
 * in that state it cannot be reset, and Node would keep it for ever.
 */
export function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
