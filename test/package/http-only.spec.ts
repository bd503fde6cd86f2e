import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisServer } from '../support/servers/redis-server.js';
import { ConsumerApp, INSTALL_TIMEOUT_MS, RUN_TIMEOUT_MS } from './support/consumer-app.js';
import { expectLocks } from './support/expect-locks.js';
import { optionalPeers } from '../support/package/pack.js';

describe('an HTTP app without the optional peers but ioredis', { timeout: RUN_TIMEOUT_MS }, () => {
  let app: ConsumerApp;
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start();
    app = await ConsumerApp.install('http-only');
  }, INSTALL_TIMEOUT_MS);
  afterAll(() => Promise.all([app?.[Symbol.asyncDispose](), server?.stop()]));

  it('is installed without them', async () => {
    const optional = await optionalPeers();
    expect(optional).toEqual(expect.arrayContaining(['@nestjs/microservices', '@nestjs/websockets']));
    expect(optional.filter((name) => app.has(name))).toEqual(['ioredis']);
  });

  it('is type-checked with TypeScript 7, all declarations of the package included', async () => {
    expect(await app.version('typescript')).toMatch(/^7\./);
    const configuration = await readFile(app.path('tsconfig.json'), 'utf8');
    expect(configuration).toContain('"skipLibCheck": false');
    expect((await app.compile()).stdout).toBe('');
  });

  it('takes locks and answers 423, and the library asks for none of them', async () => {
    const imports = app.path('imports.txt');
    const env = { REDIS_URL: server.url, IMPORTS_FILE: imports };
    expectLocks(await app.run('dist/main.js', env, '--import', './watch-imports.mjs'), 'esm');

    const imported = (await readFile(imports, 'utf8')).trim().split('\n');
    expect(imported).toEqual(expect.arrayContaining(['@nestjs/common', 'ioredis']));
    const optional = await optionalPeers();
    const others = optional.filter((name) => name !== 'ioredis');
    expect(imported.filter((name) => others.some((peer) => name.startsWith(peer)))).toEqual([]);
  });
});
