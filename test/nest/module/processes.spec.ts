import { beforeEach, describe, expect, it } from 'vitest';
import { TestWorker } from '../../support/worker.js';
import { useWorld } from '../../support/nest/world.js';
import type { FromApp, ToApp } from './locked-app.process.js';

const world = useWorld();
beforeEach(() => world.redis.flushall());

const start = async (graceMs: number, ...more: 'hooks'[]): Promise<TestWorker<ToApp, FromApp>> => {
  const module = new URL('./locked-app.process.ts', import.meta.url);
  const args = [world.server.url, String(graceMs), ...more];
  const worker = TestWorker.start<ToApp, FromApp>(module, { args });
  await worker.next('ready');
  return worker;
};

/** Starts work under a lock, and gives back what the app has warned of until then. */
const run = async (worker: TestWorker<ToApp, FromApp>, key: string): Promise<readonly string[]> => {
  worker.send({ type: 'run', key });
  return (await worker.next('running')).warnings;
};

describe('a process with an app', () => {
  it('ends by itself once the app is closed, also when work under a lock never ended', async () => {
    await using worker = await start(100);
    await run(worker, 'order');
    worker.send({ type: 'close' });
    await worker.next('closed');
    await expect(worker.finish()).resolves.toEqual({ code: 0, signal: null });
    expect(await world.isTaken('order')).toBe(true);
  });

  it('finishes its work at SIGTERM and gives the lock back, when shutdown hooks are enabled', async () => {
    await using worker = await start(30_000, 'hooks');
    expect(await run(worker, 'order')).toEqual([]);
    const gone = worker.kill('SIGTERM');
    await worker.next('stopping');
    expect(await world.isTaken('order')).toBe(true);
    worker.send({ type: 'end the work' });
    await gone;
    expect(await world.isTaken('order')).toBe(false);
  });

  it('is warned once, at its first lock, when they are not: SIGTERM then leaves the lock behind', async () => {
    await using worker = await start(30_000);
    const warnings = await run(worker, 'order');
    expect(warnings).toEqual([expect.stringContaining('app.enableShutdownHooks() was not called')]);
    expect(warnings[0]).toContain('60000 ms');
    expect(await run(worker, 'another')).toEqual(warnings);
    await worker.kill('SIGTERM');
    expect(await world.isTaken('order')).toBe(true);
  });
});
