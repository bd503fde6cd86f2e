import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisServer } from '../support/servers/redis-server.js';
import { ConsumerApp, INSTALL_TIMEOUT_MS, RUN_TIMEOUT_MS } from './support/consumer-app.js';
import { expectLocks } from './support/expect-locks.js';

describe('a Nest 12 app in ESM', { timeout: RUN_TIMEOUT_MS }, () => {
  let app: ConsumerApp;
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start();
    app = await ConsumerApp.install('nest-12-esm');
  }, INSTALL_TIMEOUT_MS);
  afterAll(() => Promise.all([app?.[Symbol.asyncDispose](), server?.stop()]));

  it('is type-checked with TypeScript 6', async () => {
    expect(await app.version('@nestjs/core')).toMatch(/^12\./);
    expect(await app.version('ioredis')).toMatch(/^6\./);
    expect(await app.version('typescript')).toMatch(/^6\./);
    expect((await app.compile()).stdout).toBe('');
  });

  it('takes locks, answers 423 while one is taken, and releases at the end of an `await using` block', async () => {
    const report = await app.run('dist/main.js', { REDIS_URL: server.url });
    expectLocks(report, 'esm');
    expect(report).toMatchObject({ disposal: { inside: true, after: false } });
  });
});
