import { connect, createServer, type Socket } from 'node:net';
import { listenOnFreePort, LOOPBACK } from '../../support/loopback.js';
import { workerChannel } from '../../support/worker-channel.js';
import type { FromDelay, ToDelay } from './network.js';

// A network between the processes and Redis: it delays all data by a number of ms, in both directions. It runs in its
// own process, so that it takes no time from the measured ones.

let delayMs = 0;

/** Passes on what comes in, in order, once its time has come. */
const pass = (from: Socket, to: Socket): void => {
  const queue: { readonly dueAt: number; readonly chunk: Buffer }[] = [];
  let timer: NodeJS.Timeout | undefined;
  const pump = (): void => {
    timer = undefined;
    for (let next = queue[0]; next; next = queue[0]) {
      const waitMs = next.dueAt - performance.now();
      if (waitMs > 0) {
        timer = setTimeout(pump, waitMs);
        return;
      }
      queue.shift();
      to.write(next.chunk);
    }
  };
  from.setNoDelay(true);
  from.on('data', (chunk) => {
    queue.push({ dueAt: performance.now() + delayMs, chunk });
    if (!timer) pump();
  });
  from.once('error', () => to.destroy());
  from.once('close', () => {
    clearTimeout(timer);
    to.destroy();
  });
};

const channel = workerChannel<ToDelay, FromDelay>(() => process.exit());

channel.on('open', async ({ port }) => {
  const server = createServer((client) => {
    const upstream = connect({ host: LOOPBACK, port });
    pass(client, upstream);
    pass(upstream, client);
  });
  channel.send({ type: 'opened', port: await listenOnFreePort(server) });
});

channel.on('delay', ({ ms }) => {
  delayMs = ms;
  channel.send({ type: 'delayed' });
});
