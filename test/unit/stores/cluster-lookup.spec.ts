import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { Cluster } from 'ioredis';
import { expect, it } from 'vitest';
import { resolveCluster } from '../../../lib/stores/redis/cluster/cluster-settings.js';
import { LOOPBACK } from '../../support/loopback.js';

type Lookup = (name: string, done: (error: Error | null, address: string) => void) => void;

/** Connects to a server by a name that only `dnsLookup` knows; resolves with the names that it was asked for. */
const namesRequested = async (sourceWith: (lookup: Lookup, port: number) => unknown, address: string) => {
  const server = createServer((socket) => socket.on('error', () => undefined));
  server.listen(0, LOOPBACK);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const names: string[] = [];
  const lookup: Lookup = (name, done) => {
    names.push(name);
    done(null, address);
  };
  const client = resolveCluster(sourceWith(lookup, port), 2_000)!.connect({ host: 'redis-1.invalid', port });
  const connected = once(server, 'connection');
  client.on('error', () => undefined);
  client.connect().catch(() => undefined);
  await connected;
  client.disconnect();
  server.close();
  return names;
};

it.each([
  ['its address', LOOPBACK],
  ['a name that the system resolves', 'localhost'],
])('servers of a cluster are found by dnsLookup, which returns %s', async (_what, address) => {
  const options = await namesRequested(
    (dnsLookup, port) => ({ cluster: [{ host: LOOPBACK, port }], dnsLookup }),
    address,
  );
  expect(options).toEqual(['redis-1.invalid']);
  const ofClient = await namesRequested(
    (dnsLookup, port) => new Cluster([{ host: LOOPBACK, port }], { lazyConnect: true, dnsLookup }),
    address,
  );
  expect(ofClient).toEqual(['redis-1.invalid']);
});
