import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeProgram } from '../../.ci/matrix/provide.mjs';
import { RedisServer } from '../support/servers/redis-server.js';
import { ConsumerApp, INSTALL_TIMEOUT_MS, RUN_TIMEOUT_MS } from './support/consumer-app.js';
import { expectLocks } from './support/expect-locks.js';
import { runJest } from './support/jest.js';
import { writeConfigSnippet, writeTestingPage } from './support/page-in-app.js';

describe('a Nest 11 app in CommonJS', { timeout: RUN_TIMEOUT_MS }, () => {
  let app: ConsumerApp;
  let server: RedisServer;
  let titles: readonly string[];
  const programs = new Map<number, string>();

  beforeAll(async () => {
    for (const major of [20, 24]) programs.set(major, nodeProgram(major).node);
    server = await RedisServer.start();
    app = await ConsumerApp.install('nest-11-cjs', 'jest', 'pages');
    titles = await writeTestingPage(app);
    await writeConfigSnippet(app);
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

  it.each([20, 24])(
    'has its unit tests pass under Jest 30 on Node %s without Redis, with fake timers too, and lets Jest end',
    async (major) => {
      const { passed, failed, stderr } = await runJest(app, { program: programs.get(major) });
      expect(failed).toEqual({});
      const own = passed.filter((name) => name.startsWith('OrderService '));
      expect(own).toHaveLength(6);
      expect(own.filter((name) => name.includes('under fake timers'))).toHaveLength(4);
      const fromPages = [...titles, 'takes its lease from ConfigService'].sort();
      expect(passed.filter((name) => !own.includes(name))).toEqual(fromPages);
      expect(stderr).not.toContain('did not exit');
    },
  );
});
