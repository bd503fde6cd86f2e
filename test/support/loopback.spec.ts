import { connect, createServer, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { until } from './async.js';
import { listenOnFreePort, LOOPBACK, reset } from './loopback.js';

it('a connection is closed by a reset, also when it is just ending', async () => {
  const accepted: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket.on('error', () => undefined).resume());
  });
  const port = await listenOnFreePort(server);
  const errors: Error[] = [];
  const clients = [1, 2].map(() =>
    connect({ port, host: LOOPBACK, allowHalfOpen: true }).on('error', (error) => errors.push(error)),
  );
  await until(() => accepted.length === 2, { what: 'both connections are open' });
  clients[0]!.end();
  // The end is under way once the stream has finished what it was given.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  for (const client of clients) reset(client);
  await until(() => clients.every(({ closed }) => closed), { what: 'both are closed' });
  expect(errors).toEqual([]);
  for (const socket of accepted) socket.destroy();
  server.close();
});
