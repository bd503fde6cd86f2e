import { afterAll, describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { TestWorker } from '../../support/worker.js';
import { useWorld } from '../../support/nest/world.js';
import { LOOPBACK } from '../../support/loopback.js';
import { RedisServer } from '../../support/servers/redis-server.js';
import { RedisClusterServers } from '../../support/servers/redis-cluster.js';
import { RedisSentinels } from '../../support/servers/redis-sentinels.js';
import type { FromFailingApp } from './failing-app.process.js';
import type { FromUsedAtStart, UsedAtStart } from './used-at-start.process.js';

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

type Redis = UsedAtStart['options']['redis'];

/** Commands have a third of it. */
const WATCHDOG_MS = 3_000;

/** The server counts whole seconds, of which the last may not be over. */
const uptimeMs = async (server: RedisServer): Promise<number> =>
  (Number(/uptime_in_seconds:(\d+)/.exec(await server.text('INFO', 'server'))![1]) - 1) * 1_000;

/** Nothing listens there. */
const NOWHERE = { host: LOOPBACK, port: 1 };

/** Where Redis is. What is started for that is shared by the tests. */
const PLACES: Record<string, () => Promise<Redis>> = {
  'one server': async () => world.server.url,
  'a server that is not there': async () => NOWHERE,
  Sentinel: async () => started(await RedisSentinels.start()).options,
  'sentinels that are not there': async () => ({ sentinels: [NOWHERE], name: 'mymaster' }),
  'a cluster': async () => started(await RedisClusterServers.start({ replicas: false })).options,
  'a quorum of which a server is not there': async () => {
    const other = started(await RedisServer.start());
    // A server that has just been started may have forgotten locks.
    await until(async () => (await uptimeMs(other)) > WATCHDOG_MS, { what: 'the server counts' });
    return [world.server.url, other.url, NOWHERE];
  },
};
const running: (() => PromiseLike<void>)[] = [];
const started = <T extends AsyncDisposable>(servers: T): T => {
  running.push(() => servers[Symbol.asyncDispose]());
  return servers;
};
afterAll(async () => {
  for (const stop of running.splice(0)) await stop();
});

const found = new Map<string, Promise<Redis>>();
const placeOf = (name: string): Promise<Redis> => {
  const place = found.get(name) ?? PLACES[name]!();
  found.set(name, place);
  return place;
};

const OUTCOME = { released: 'ran', held: 'held' };

// Each waits for the end of a process, on keys of its own.
describe.concurrent('an app that has used a lock before its start failed', () => {
  const start = (used: UsedAtStart): TestWorker<never, FromUsedAtStart> =>
    TestWorker.start<never, FromUsedAtStart>(new URL('./used-at-start.process.ts', import.meta.url), {
      args: [JSON.stringify(used)],
    });

  it.each(
    Object.keys(PLACES).flatMap((place) =>
      (['released', 'held'] as const).map((use) => [place, use] as const),
    ),
  )('ends by itself, with %s, where the lock is %s', async (name, use) => {
    const options = { redis: await placeOf(name), watchdogMs: WATCHDOG_MS, keyPrefix: `${name} ${use}:` };
    await using worker = start({ options, use, starts: false });
    const isThere = !/^(a server|sentinels) that/.test(name);
    const { outcome } = await worker.next('used');
    expect(outcome).toBe(isThere ? OUTCOME[use] : 'LOCK_STORE_FAILED');
    expect((await worker.next('over')).outcome).toBe('no such database');
    await expect(worker.finish()).resolves.toEqual({ code: 0, signal: null });
  });

  it('ends with a store of its own, which it closes', async () => {
    const options = world.options({ keyPrefix: 'own:' });
    await using worker = start({ options, use: 'held', starts: false, hasOwnStore: true });
    expect((await worker.next('used')).outcome).toBe('held');
    expect((await worker.next('over')).outcome).toBe('no such database');
    await expect(worker.finish()).resolves.toEqual({ code: 0, signal: null });
  });

  it('lives while a caller waits for a lock', async () => {
    const options = world.options({ keyPrefix: 'waited for:' });
    await using worker = start({ options, use: 'waited for', starts: false });
    // Nothing else keeps the process alive.
    const ended = worker.finish();
    await expect(ended).resolves.toEqual({ code: 0, signal: null });
  });

  it.each(['a cluster', 'Sentinel'])(
    'starts with %s, although nothing else keeps the process alive',
    async (name) => {
      const redis = await placeOf(name);
      await using worker = start({ options: { redis }, use: 'released', starts: true });
      expect((await worker.next('over')).outcome).toBe('started');
    },
  );

  it.each([
    ['has started', false],
    ['has started, and loads the module after that', true],
  ])('stays alive with its connections when it %s', async (how, isLazy) => {
    const options = world.options({ keyPrefix: `${how}:` });
    await using worker = start({ options, use: 'released', starts: true, isLazy });
    expect((await worker.next('over')).outcome).toBe('started');
    await until(() => world.redis.exists(`${how}:alive`), { what: 'the process lives and takes a lock' });
    expect(worker.isRunning).toBe(true);
  });
});
