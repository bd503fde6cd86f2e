import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseInvocation, type Invocation } from '../../../lib/cli/arguments.js';
import { optionsOf } from '../../../lib/cli/open-store.js';
import { UsageError } from '../../../lib/cli/usage-error.js';
import { LockConfigurationError } from '../../../lib/index.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'config-'));
  mkdirSync(join(folder, 'tls'));
  writeFileSync(join(folder, 'tls', 'ca.pem'), 'the certificate\n');
});
afterAll(() => rmSync(folder, { recursive: true }));

const ENV = {
  REDIS_PASSWORD: 's3cr3t',
  LOCK_URL: 'redis://ops:s3cr3t@h:6379',
  MYSQL_URL: 'mysql://h/app',
  EMPTY: '',
};

/** Reads a configuration from a file, and the same from the environment. */
const parsed = (config: unknown, ...args: readonly string[]) => {
  const text = typeof config === 'string' ? config : JSON.stringify(config);
  const path = join(folder, 'locks.json');
  writeFileSync(path, text);
  return parseInvocation(['who', 'a', '--config', path, ...args], ENV) as Invocation;
};

const SENTINELS = {
  sentinels: [
    { host: 's1', port: 26379 },
    { host: 's2', port: 26379 },
  ],
  name: 'locks',
};

describe('a configuration of the command', () => {
  it('has the options of a store, with texts of the environment and of files beside it', () => {
    const redis = {
      ...SENTINELS,
      username: 'ops',
      password: { env: 'REDIS_PASSWORD' },
      sentinelPassword: 'other-s3cr3t',
      tls: { ca: { file: 'tls/ca.pem' }, servername: 'locks.internal' },
    };
    expect(parsed({ redis, keyPrefix: 'shop:' })).toMatchObject({
      keyPrefix: 'shop:',
      address: {
        store: 'redis',
        sources: [
          {
            ...{ ...SENTINELS, username: 'ops', password: 's3cr3t', sentinelPassword: 'other-s3cr3t' },
            tls: { ca: 'the certificate', servername: 'locks.internal' },
          },
        ],
      },
      secrets: expect.arrayContaining(['s3cr3t', 'other-s3cr3t']) as unknown,
    });
    expect(parsed({ mysql: { options: { ssl: 's3cr3t' } } }).secrets).toContain('s3cr3t');
    expect(parsed({ mysql: 'mysql://h/d?ssl={s3cr3t' }).secrets).toContain('{s3cr3t');
    expect(parsed({ redis, keyPrefix: 'shop:' }, '--key-prefix', '')).toMatchObject({ keyPrefix: '' });
    expect(parsed('\uFEFF{ "redis": "redis://a" }')).toMatchObject({ address: { sources: ['redis://a'] } });
  });

  it.each([
    [{ redis: { cluster: ['a:1', 'b:2'], password: 'x' } }, 'redis', 1],
    [{ redis: ['redis://a', { host: 'b' }, 'redis://c'] }, 'redis', 3],
    [{ redis: { env: 'LOCK_URL' } }, 'redis', 1],
  ])('%j is Redis', async (config, store, sources) => {
    const { address } = parsed(config);
    expect(address).toMatchObject({ store, sources: { length: sources } });
    const { store: opened } = await optionsOf({ command: 'who', address });
    expect(opened!.name).toContain(sources > 1 ? 'quorum' : 'Redis');
    await opened!.close();
  });

  it.each([
    [
      { postgres: { connectionString: 'postgres://h/app', settings: { password: 'x', ssl: { ca: 'y' } } } },
      'PostgreSQL',
    ],
    [{ mysql: { options: { host: 'h', user: 'u', password: 'x', ssl: {} } } }, 'MySQL'],
    [{ zookeeper: { connect: 'z:2181', auth: { digest: 'u:x' }, tls: { ca: 'y' } } }, 'ZooKeeper'],
    [{ postgres: 'postgres://h/app' }, 'PostgreSQL'],
    [{ mysql: { env: 'MYSQL_URL' } }, 'MySQL'],
    [{ zookeeper: 'z:2181' }, 'ZooKeeper'],
  ])('%j is a store', async (config, name) => {
    const { address } = parsed(config);
    const { store } = await optionsOf({ command: 'who', address });
    expect(store!.name).toBe(name);
    await store!.close();
  });

  it('stands in the environment, before REDIS_URL', () => {
    const env = { NEST_REDIS_LOCK_CONFIG: '{"redis":{"host":"of-config"}}', REDIS_URL: 'redis://other' };
    const address = { store: 'redis', sources: [{ host: 'of-config' }] };
    expect(parseInvocation(['list'], env)).toMatchObject({ address });
    expect(parseInvocation(['list', '--redis', 'given'], env)).toMatchObject({
      address: { sources: ['given'] },
    });
  });

  it.each([
    ['{"redis": "s3cr3t', 'is no object in JSON'],
    ['["s3cr3t"]', 'is no object in JSON'],
    [{}, 'must have one of redis, postgres, mysql, zookeeper.'],
    [{ redis: 's3cr3t', mysql: {} }, 'must have one of'],
    [{ redis: {} }, 'redis names no server.'],
    [{ redis: [] }, 'redis names no server.'],
    [{ mysql: null }, 'mysql names no server.'],
    [{ redis: { password: { env: 'toString' } } }, 'the environment variable toString is not set.'],
    [{ reddis: 's3cr3t' }, '"reddis" is none of redis,'],
    [{ redis: 'redis://h', keyPrefix: 5 }, 'keyPrefix is no text'],
    [{ redis: { password: { env: 'UNSET' } } }, 'redis.password: the environment variable UNSET is not set.'],
    [{ redis: { password: { env: 'EMPTY' } } }, 'redis.password: the environment variable EMPTY is empty.'],
    [
      { redis: { tls: { ca: { file: 'no.pem' } } } },
      'redis.tls.ca: the file no.pem cannot be read (ENOENT).',
    ],
  ])('%j is refused by name, without its values', (config, message) => {
    expect(() => parsed(config)).toThrow(UsageError);
    expect(() => parsed(config)).toThrow(message);
    expect(() => parsed(config)).not.toThrow(/s3cr3t/);
  });

  it.each([
    [{ redis: { hots: 'h' } }, /hots/],
    [{ redis: { host: { env: 'LOCK_URL', more: 1 } } }, /redis\.host/],
    [{ postgres: { connection: 'x' } }, /connection is no option of PostgresStore/],
    [{ mysql: { uri: null } }, /uri must be an address/],
    [{ zookeeper: { connect: 5 } }, /connect/],
  ])('%j is refused by its store, by name', async (config, message) => {
    const { address } = parsed(config);
    const opening = optionsOf({ command: 'who', address });
    await expect(opening).rejects.toThrow(message);
    await expect(opening).rejects.toBeInstanceOf(LockConfigurationError);
  });

  it('in a file that is not there is refused', () => {
    expect(() => parseInvocation(['list', '--config', join(folder, 'none.json')], {})).toThrow(
      'The file of --config cannot be read (ENOENT).',
    );
  });
});
