import { describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { TestWorker } from '../../support/worker.js';
import { useWorld } from '../../support/nest/world.js';
import type { FromFailingApp } from './failing-app.process.js';

const world = useWorld();
const connections = async (): Promise<number> =>
  ((await world.redis.client('LIST')) as string).trim().split('\n').length;

describe('an app that does not start', () => {
  it.each([
    ['the factory of another provider', 'no such database'],
    ['the options of another lock module', 'no such database'],
    ['a second lock module without a name', 'imported twice'],
    ['a $name in a key without a context option', 'which never has a value'],
    ['onModuleInit of a provider', 'no such database'],
    ['onApplicationBootstrap of a provider', 'no such database'],
  ])('because of %s leaves no connection, and its process ends by itself', async (way, reason) => {
    const module = new URL('./failing-app.process.ts', import.meta.url);
    const args = [world.server.url, way];
    await using worker = TestWorker.start<never, FromFailingApp>(module, { args });
    expect((await worker.next('failed')).reason).toContain(reason);
    await until(async () => (await connections()) === 1, { what: 'only the test is connected' });
    expect(worker.isRunning).toBe(true);
    await expect(worker.finish({ timeoutMs: 5_000 })).resolves.toEqual({ code: 0, signal: null });
  });
});
