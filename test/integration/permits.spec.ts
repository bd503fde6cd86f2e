import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { Lab, newKey, useLab } from '../support/redis/lab.js';

/** Long beside what a wake-up takes. */
const SOON_MS = 8_000;

const lab = useLab();

const listening = (key: string, on: Lab = lab): Promise<unknown> =>
  until(async () => (await on.channels()).includes(`redisson_sc:{lock:${key}}`), {
    what: `somebody listens for permits of ${key}`,
  });

describe('permits', () => {
  it('let as many callers run at once as there are permits, across processes, and no more', async () => {
    const services = [lab.open(), lab.open(), lab.open()];
    const key = newKey();
    let [inside, max, served] = [0, 0, 0];
    await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        services[i % 3]!.locks.permits(key, { permits: 11 }).withPermit({ waitMs: 30_000 }, async () => {
          max = Math.max(max, (inside += 1));
          for (let n = 0; n < 1 + (i % 5); n += 1) await lab.admin.ping();
          inside -= 1;
          served += 1;
        }),
      ),
    );
    expect({ max, served, inside }).toEqual({ max: 11, served: 100, inside: 0 });
    for (const { locks } of services) await until(() => locks.usage.leases === 0);
    expect(await services[0]!.locks.inspect(key)).toBeNull();
  });

  it('wake a waiter of another process when one is released', async () => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const key = newKey();
    const leases = [
      await holder.locks.permits(key, { permits: 2 }).acquire(),
      await holder.locks.permits(key, { permits: 2 }).acquire(),
    ];
    const waiting = waiter.locks.permits(key, { permits: 2 }).acquire({ waitMs: 25_000 });
    await listening(key);
    await leases[0]!.release();
    const next = await within(SOON_MS, waiting);
    expect((await holder.locks.inspect(key))?.holders).toHaveLength(2);
    await Promise.all([leases[1]!.release(), next.release()]);
  });

  it('reject a caller that times out, and none is taken for it', async () => {
    const { locks, events } = lab.open();
    const key = newKey();
    await using _all = await locks.permits(key, { permits: 1 }).acquire();
    const refused = locks.permits(key, { permits: 1 }).acquire({ waitMs: 60 });
    await expect(refused).rejects.toMatchObject({ code: 'LOCK_TAKEN', key });
    expect(await locks.permits(key, { permits: 1 }).tryAcquire()).toBeNull();
    expect(events('busy')).toHaveLength(2);
    expect((await locks.inspect(key))?.holders).toHaveLength(1);
    expect(locks.usage.leases).toBe(1);
  });

  it('wake a waiter when another caller raises their number, also beside a holder of its process', async () => {
    const { locks } = lab.open();
    const key = newKey();
    await using _first = await locks.permits(key, { permits: 1 }).acquire();
    const waiting = locks.permits(key).acquire({ waitMs: 20_000 });
    await listening(key);
    await using _second = await lab.open().locks.permits(key, { permits: 3 }).acquire();
    await using _third = await within(SOON_MS, waiting);
    expect((await locks.inspect(key))?.holders).toHaveLength(3);
  });

  it('are granted to all waiters after Redis is lost between a request and its grant, and comes back', async () => {
    await using own = await Lab.start({ appendFsync: 'always' });
    const patient = { commandTimeoutMs: 10_000 };
    const [holder, waiter] = [own.open(patient), own.open(patient)];
    const lease = await holder.locks.permits('mail', { permits: 1 }).acquire();
    let done = 0;
    const waiting = Array.from({ length: 10 }, () =>
      waiter.locks.permits('mail', { permits: 1 }).withPermit({ waitMs: 25_000 }, () => (done += 1)),
    );
    // Each acquire counts the permits once: the holder's, the waiter's, and that of the waiter when it listens.
    await until(async () => (await own.calls())['zcount'] === 3, { what: 'the waiter has asked twice' });
    // The second request has its reply before this ping has.
    await waiter.locks.ping();
    await own.server.restart();
    await until(async () => (await lease.release()) === 'released');
    await Promise.all(waiting);
    expect(done).toBe(10);
    expect(await holder.locks.inspect('mail')).toBeNull();
  }, 40_000);
});
