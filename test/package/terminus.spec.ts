import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ConsumerApp, INSTALL_TIMEOUT_MS, RUN_TIMEOUT_MS } from './support/consumer-app.js';
import { writeSnippets } from './support/page-in-app.js';

interface Reply {
  readonly status: number;
  readonly body: object;
}

const UP = { status: 'up', holds: 0, pingMs: expect.any(Number) as number };
const DOWN = { status: 'down', holds: 0, code: 'LOCK_STORE_FAILED', message: expect.any(String) as string };

describe.each([10, 11, 12])('an app with Terminus %s', { timeout: RUN_TIMEOUT_MS }, (major) => {
  let app: ConsumerApp;
  let replies: Record<string, Reply>;

  beforeAll(async () => {
    app = await ConsumerApp.install(`terminus-${major}`, 'terminus');
    await writeSnippets(app, {
      page: 'docs/operations/troubleshooting.md',
      withText: '@nestjs/terminus',
      files: ['health.controller.ts'],
    });
    replies = (await app.run('dist/main.js', {})) as Record<string, Reply>;
  }, INSTALL_TIMEOUT_MS);
  afterAll(() => app?.[Symbol.asyncDispose]());

  it('is type-checked, with the snippet of the page about health checks', async () => {
    expect(await app.version('@nestjs/terminus')).toMatch(new RegExp(`^${major}\\.`));
    expect((await app.compile()).stdout).toBe('');
  });

  it('replies 200 while the store works', () => {
    expect(replies['up']).toMatchObject({ status: 200, body: { status: 'ok', info: { locks: UP } } });
    expect(replies['upThrowing']).toMatchObject({ status: 200, body: { details: { redis: UP } } });
  });

  it('replies 503 while it does not, without the address of the store', () => {
    const [reply, key] = major === 10 ? [replies['downThrowing']!, 'redis'] : [replies['down']!, 'locks'];
    expect(reply).toMatchObject({ status: 503, body: { status: 'error', error: { [key]: DOWN } } });
    expect(JSON.stringify(replies)).not.toContain('10.0.0.7');
  });

  // The page about health checks says so.
  it('needs checkOrThrow in version 10, takes both in 11, and needs check in 12', () => {
    expect([replies['down']!.status, replies['downThrowing']!.status]).toEqual(
      { 10: [200, 503], 11: [503, 503], 12: [503, 500] }[major],
    );
  });
});
