import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
});
