import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeProgram } from '../../.ci/matrix/provide.mjs';
import { RedisServer } from '../support/servers/redis-server.js';
import { ConsumerApp, INSTALL_TIMEOUT_MS, RUN_TIMEOUT_MS } from './support/consumer-app.js';
import { expectLocks } from './support/expect-locks.js';
import { runJest } from './support/jest.js';
import { writeTestingPage } from './support/page-in-app.js';
import { readManifest } from '../support/package/pack.js';

describe('a Nest 10 app in CommonJS', { timeout: RUN_TIMEOUT_MS }, () => {
  let app: ConsumerApp;
  let server: RedisServer;
  let titles: readonly string[];
  let program: string;

  beforeAll(async () => {
    program = nodeProgram(20).node;
    server = await RedisServer.start();
    app = await ConsumerApp.install('nest-10-cjs', 'pages');
    titles = await writeTestingPage(app);
  }, INSTALL_TIMEOUT_MS);
  afterAll(() => Promise.all([app?.[Symbol.asyncDispose](), server?.stop()]));

  it('has the oldest version of each peer that the package says it works with', async () => {
    const { peerDependencies } = await readManifest();
    for (const name of ['@nestjs/common', '@nestjs/core', 'ioredis', 'reflect-metadata']) {
      const oldest = /\d+\.\d+\.\d+/.exec(peerDependencies[name] ?? '')?.[0];
      expect(await app.version(name), name).toBe(oldest);
    }
  });

  it('finds the types of both entry points with TypeScript 5.1, which looks for files and knows no exports', async () => {
    expect(await app.version('typescript')).toMatch(/^5\.1\./);
    expect((await app.compile()).stdout).toBe('');
  });

  it('takes locks, answers 423 over HTTP and over messages while one is taken, and ends a feed with its client', async () => {
    const report = await app.run('dist/main.js', { REDIS_URL: server.url });
    expectLocks(report, 'cjs');
    expect(report).toMatchObject({
      messages: { served: 'refunded ada', refused: { status: 423, code: 'LOCK_TAKEN' } },
      // Nest 10 itself does not hear that the client of an endless Observable has left.
      feeds: [
        { taken: true, freed: true },
        { taken: true, freed: true },
      ],
    });
  });

  it('has the tests of the page about testing pass under Jest 29 on Node 20, which lacks Symbol.asyncDispose', async () => {
    expect(await app.version('jest')).toMatch(/^29\./);
    const { passed, failed, stderr } = await runJest(app, { program });
    expect(failed).toEqual({});
    expect(passed).toEqual([...titles, 'has no Symbol.asyncDispose'].sort());
    expect(stderr).not.toContain('did not exit');
  });
});
