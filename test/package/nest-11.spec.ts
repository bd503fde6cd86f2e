import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisServer } from '../support/redis-server.js';
import { ConsumerApp, INSTALL_TIMEOUT_MS, RUN_TIMEOUT_MS } from './support/consumer-app.js';
import { expectLocks } from './support/expect-locks.js';

interface JestReport {
  readonly success: boolean;
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

describe('a Nest 11 app in CommonJS', { timeout: RUN_TIMEOUT_MS }, () => {
  let app: ConsumerApp;
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start();
    app = await ConsumerApp.install('nest-11-cjs');
  }, INSTALL_TIMEOUT_MS);
  afterAll(() => Promise.all([app?.[Symbol.asyncDispose](), server?.stop()]));

  it('is type-checked with TypeScript 5.9', async () => {
    expect(await app.version('@nestjs/core')).toMatch(/^11\./);
    expect(await app.version('ioredis')).toMatch(/^5\./);
    expect(await app.version('typescript')).toMatch(/^5\.9\./);
    expect((await app.compile()).stdout).toBe('');
  });

  it('takes locks, answers 423 while one is taken, and releases at the end of an `await using` block', async () => {
    const report = await app.run('dist/main.js', { REDIS_URL: server.url });
    expectLocks(report, 'cjs');
    expect(report).toMatchObject({ disposal: { inside: true, after: false } });
  });

  it('has its unit tests pass under Jest 30 without Redis, with fake timers too, and lets Jest end', async () => {
    const { stdout, stderr } = await app.tool('jest/bin/jest.js', ['--ci', '--runInBand', '--json']);
    const { success, testResults } = JSON.parse(stdout) as JestReport;
    const results = testResults.flatMap(({ assertionResults }) => assertionResults);
    expect(success).toBe(true);
    expect(results.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 'passed'));
    expect(results.filter(({ fullName }) => fullName.includes('under fake timers'))).toHaveLength(4);
    expect(stderr).not.toContain('did not exit');
  });
});
