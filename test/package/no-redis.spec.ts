import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { npm } from '../support/package/command.js';
import { optionalPeers } from '../support/package/pack.js';
import { ConsumerApp, INSTALL_TIMEOUT_MS, RUN_TIMEOUT_MS } from './support/consumer-app.js';

describe('an app with another store, without ioredis', { timeout: RUN_TIMEOUT_MS }, () => {
  let app: ConsumerApp;

  beforeAll(async () => {
    app = await ConsumerApp.install('no-redis');
  }, INSTALL_TIMEOUT_MS);
  afterAll(() => app?.[Symbol.asyncDispose]());

  it('is installed and type-checked without any optional peer', async () => {
    const optional = await optionalPeers();
    expect(optional).toContain('ioredis');
    expect(optional.filter((name) => app.has(name))).toEqual([]);
    expect((await app.compile()).stdout).toBe('');
  });

  it('takes locks, and is told what redis needs', async () => {
    expect(await app.run('dist/main.js', {})).toEqual({
      wasLocked: true,
      refusal: 'redis needs the package ioredis, which cannot be loaded: npm install ioredis.',
    });
  });

  it('loads each subpath as an ES module and as CommonJS, with the same names, unless it lacks its driver', async () => {
    const startsWith = (name: string): unknown => expect.stringMatching(new RegExp(`^${name}\\b`));
    expect(await app.run('dist/subpaths.js', {})).toEqual({
      '.': startsWith('InjectLockService'),
      './testing': startsWith('LockTesting'),
      './redis': 'needs ioredis',
      './store': startsWith('EXPIRING'),
      './fencing': startsWith('FENCING_MIGRATIONS'),
      './mysql': 'needs mysql2',
      './opentelemetry': 'needs @opentelemetry/api',
      './postgres': 'needs pg',
      './zookeeper': startsWith('ZooKeeperStore'),
    });
  });

  it('has the command', async () => {
    const options = { cwd: app.path(), timeoutMs: RUN_TIMEOUT_MS };
    const { stdout, stderr } = await npm(['exec', '--no', '--', 'nest-redis-lock', '--help'], options);
    expect([stdout, stderr]).toEqual([expect.stringContaining('Usage: nest-redis-lock <command>'), '']);
  });
});
