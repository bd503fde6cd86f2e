import { expect, it } from 'vitest';
import { LockManager } from '../../lib/core/service/lock-manager.js';
import { defaultCall } from '../../lib/core/settings/lock-call.js';
import { resolveSettings } from '../../lib/core/settings/lock-settings.js';
import { RedisStore } from '../../lib/stores/redis/redis.store.js';
import { until } from '../support/async.js';
import { Log } from '../support/core/core-under-test.js';
import { Lab } from '../support/redis/lab.js';

/** Renewals are too seldom to notice anything. */
const WATCHDOG_MS = 300_000;

it('a restart of the server reaches the holders of each service that shares the store', async () => {
  await using lab = await Lab.start();
  const store = new RedisStore({ redis: lab.server.url });
  const services = ['first:', 'second:'].map((keyPrefix) => {
    const settings = resolveSettings({ keyPrefix, watchdogMs: WATCHDOG_MS, shutdownGraceMs: 0 });
    return { settings, manager: new LockManager(store, settings, new Log()) };
  });
  const leases = await Promise.all(
    services.map(({ manager, settings }) => manager.acquire(['key'], defaultCall(settings))),
  );
  await lab.server.kill('SIGKILL');
  await lab.server.restart({ keepData: false });
  await until(() => leases.every(({ lost }) => lost));
  expect(leases.map(({ signal }) => signal.aborted)).toEqual([true, true]);
  for (const { manager } of services) await manager.close();
});
