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

describe('the page about job queues', { timeout: RUN_TIMEOUT_MS }, () => {
  let app: ConsumerApp;
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start();
    app = await ConsumerApp.install('job-queue');
    expect(await writeRecipe(app)).toEqual(['crm.processor.ts', 'ledger.processor.ts']);
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

  it('runs jobs of a customer in order, with two workers of which one stops, and fails none', async () => {
    expect(await app.run('dist/order.js', { REDIS_URL: server.url })).toEqual({
      ...{ began: true, done: true, failed: 0, overlaps: 0, open: 0, outOfOrder: 0 },
    });
  });

  it('delays a job in each major version of BullMQ, and counts no attempt since BullMQ 5', async () => {
    const since5 = { delayed: true, failedMeanwhile: 0, counted: false, runs: 2 };
    const before = { ...since5, counted: true, runs: 1 };
    expect(await app.run('dist/versions.js', { REDIS_URL: server.url })).toEqual({
      ...{ bullmq: since5, 'bullmq-5': since5, 'bullmq-4': before, 'bullmq-3': before },
    });
  });
});
