import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codeBlocks } from '../support/markdown.js';
import { repository } from '../support/package/pack.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { ConsumerApp, INSTALL_TIMEOUT_MS, RUN_TIMEOUT_MS } from './support/consumer-app.js';

const PAGE = join(repository, 'docs', 'guide', 'job-queues.md');

/** Writes the files that the page shows into the app, which is an ES module. */
const writeRecipe = async (app: ConsumerApp): Promise<readonly string[]> => {
  const files = codeBlocks(await readFile(PAGE, 'utf8'), 'typescript').map((code) => {
    const name = /^\/\/ (\S+\.ts)\n/.exec(code)?.[1];
    if (!name) throw new Error(`This code says no file in its first line:\n${code}`);
    return { name, code: code.replace(/(from '\.\/[^']+)'/g, "$1.js'") };
  });
  for (const { name, code } of files) await writeFile(app.path('src', name), code);
  return files.map(({ name }) => name);
};

describe('the recipe for job queues', { timeout: RUN_TIMEOUT_MS }, () => {
  let app: ConsumerApp;
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start();
    app = await ConsumerApp.install('job-queue');
    expect(await writeRecipe(app)).toEqual(['or-delay.ts', 'crm.processor.ts']);
  }, INSTALL_TIMEOUT_MS);
  afterAll(() => Promise.all([app?.[Symbol.asyncDispose](), server?.stop()]));

  it('delays jobs that wait for a permit, also when their worker stops, and fails none', async () => {
    expect(await app.run('dist/main.js', { REDIS_URL: server.url })).toEqual({
      allPlacesTaken: true,
      otherTenantRan: true,
      someWait: true,
      refusedByStop: true,
      afterStop: { failed: 0, active: 0 },
      allDone: true,
      failed: 0,
      runs: 9,
      mostAtOnce: 2,
    });
  });
});
