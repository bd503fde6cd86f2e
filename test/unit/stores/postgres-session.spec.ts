import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import { PostgresSession } from '../../../lib/stores/postgres/postgres-session.js';
import { LOOPBACK } from '../../support/loopback.js';

it('a connection for which the server says nothing ends with the time that it was waited for', async () => {
  const server = createServer((socket) => void socket.resume()).listen(0, LOOPBACK);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const connecting = PostgresSession.connect(
    { host: LOOPBACK, port, user: 'app' },
    { runtime: systemRuntime(), timeoutMs: 50 },
  );
  await expect(connecting).rejects.toMatchObject({
    message: 'there was no connection to PostgreSQL within 50 ms',
    outcome: 'not-executed',
    passing: true,
  });
  server.close();
  await once(server, 'close');
});
