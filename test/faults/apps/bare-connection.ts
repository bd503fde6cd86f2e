import { Redis } from 'ioredis';
import { ADMIN } from '../../support/servers/redis-configuration.js';
import type { ReplicasWanted } from '../workload/worker-messages.js';
import { LOOPBACK } from '../../support/loopback.js';

/** How long a bare connection waits for a server that hangs, in ms. */
const PATIENCE_MS = 250;

/** Connects to one server, without the library between. The connection is opened again until it is closed. */
export const bareConnection = (port: number): Redis => {
  const client = new Redis({
    ...ADMIN,
    host: LOOPBACK,
    port,
    protocol: 2,
    connectTimeout: PATIENCE_MS,
    commandTimeout: PATIENCE_MS,
    disableClientInfo: true,
    enableReadyCheck: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => 10,
  });
  // While a server is down this is not news.
  client.on('error', () => undefined);
  return client;
};

/** Whether the server accepts a write, and so many replicas acknowledge it. */
export const acceptsWrites = async (
  client: Redis,
  {
    key = 'laboratory',
    replicas,
  }: { readonly key?: string; readonly replicas?: ReplicasWanted | undefined } = {},
): Promise<boolean> => {
  try {
    await client.set(key, 1, 'PX', 1_000);
    if (!replicas) return true;
    return (await client.wait(replicas.min, replicas.timeoutMs)) >= replicas.min;
  } catch {
    // It is down, hangs, copies another one, or does not have the slot.
    return false;
  }
};

/** Bare connections by port, each opened when it is first asked for. */
export class BareConnections {
  private readonly open = new Map<number, Redis>();

  to(port: number): Redis {
    const client = this.open.get(port) ?? bareConnection(port);
    this.open.set(port, client);
    return client;
  }

  close(): void {
    for (const client of this.open.values()) client.disconnect();
    this.open.clear();
  }
}
