import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Redis, RedisOptions } from 'ioredis';

// Peers have their own folder, lockfile and node_modules (test/bench/peers): some need another Nest than this
// repository, and none of them may break its install. An adapter declares what it uses of its peer, so that the checks
// need no installed peer.
const require = createRequire(new URL('../peers/package.json', import.meta.url));

/** Loads a package that is installed for the benchmark only, the way CommonJS code gets it. */
export const peer = <T>(name: string): T => require(name) as T;

interface Ioredis {
  readonly Redis: new (url: string, options?: RedisOptions) => Redis;
}

/** A connected client with default options, of the ioredis that is installed with the peers: the floor's version. */
export const connect = async (url: string): Promise<Redis> => {
  const client = new (peer<Ioredis>('ioredis').Redis)(url, { lazyConnect: true });
  await client.connect();
  return client;
};

/** For peers that count tries instead of time: more than a caller can use up in any workload. */
export const TRIES_WITHOUT_END = 1_000_000;

/** What is compared with, as it is installed. */
const PEERS = [
  'redlock',
  '@sesamecare-oss/redlock',
  'redis-semaphore',
  'redlock-universal',
  'nestjs-redlock-universal',
  'node-redisson',
  'murlock',
  '@nestjs-redis/lock',
  '@redis-kit/lock',
  'ioredis',
  'redis',
  '@nestjs/core',
];

interface Lockfile {
  readonly packages: Readonly<Record<string, { readonly version: string } | undefined>>;
}

/** The versions that the peers' lockfile, and go.mod, pin, by name. */
export const peerVersions = (): Record<string, string> => {
  const { packages } = peer<Lockfile>('./package-lock.json');
  const npm = PEERS.map((name) => [name, packages[`node_modules/${name}`]?.version ?? 'unknown']);
  const go = readFileSync(new URL('../../interop/go/go.mod', import.meta.url), 'utf8');
  const redsync = /go-redsync\/redsync\/v4 v(\S+)/.exec(go)?.[1] ?? 'unknown';
  return Object.fromEntries([...npm, ['redsync', redsync]]) as Record<string, string>;
};
