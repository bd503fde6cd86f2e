import { LockService } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { LockManager } from '../../lib/core/service/lock-manager.js';
import { systemRuntime } from '../../lib/core/util/runtime.js';
import { resolveOptions } from '../../lib/nest/module/redis-lock.options.js';
import { until } from '../support/async.js';
import { STORES } from '../support/stores/stores.js';

const PATIENCE_MS = 5_000;
const WORK_MS = 4_000;
const runtime = systemRuntime();

/** Works for as long as the title says: the time is what is tested. */
const work = (): Promise<void> => new Promise((resolve) => void runtime.setTimer(resolve, WORK_MS));

describe('five workers that are patient for 5 s while each works for 4 s', () => {
  it.concurrent.each(STORES)('$name: two work, three give up and leave nothing', async ({ makeHarness }) => {
    const harness = await makeHarness();
    const managers: LockManager[] = [];
    const open = async (): Promise<LockService> => {
      const store = await harness.connect();
      const { settings } = resolveOptions({ store, shutdownGraceMs: 0, holderInfo: false });
      const log = { log: () => undefined, warn: () => undefined };
      const manager = new LockManager(store, settings, log);
      managers.push(manager);
      return new LockService(manager, undefined);
    };
    const services = await Promise.all(Array.from({ length: 6 }, open));
    const [late, ...workers] = services as [LockService, ...LockService[]];
    try {
      await Promise.all(services.map((locks) => locks.ping()));
      let [inside, most] = [0, 0];
      const attempts = await Promise.all(
        workers.map((locks) =>
          locks.tryWithLock('job', { waitMs: PATIENCE_MS }, async () => {
            inside += 1;
            most = Math.max(most, inside);
            await work();
            inside -= 1;
          }),
        ),
      );
      expect(attempts.filter(({ ran }) => ran)).toHaveLength(2);
      expect(most).toBe(1);
      // An entry that is left in a wait queue would keep out a caller that does not wait.
      expect((await late.tryWithLock('job', () => 'alone')).ran).toBe(true);
      const left = async () => {
        const { holds, watches } = await harness.leftovers();
        const sizes = services.flatMap(({ usage }) => Object.values(usage));
        return Math.max(...sizes, holds, watches);
      };
      await until(async () => (await left()) === 0, { what: 'nothing is left in a process or in the store' });
    } finally {
      await Promise.all(managers.map((manager) => manager.close()));
      await harness.cleanup();
    }
  });
});
