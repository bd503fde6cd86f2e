import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { PgBouncer } from '../../support/servers/pg-bouncer.js';
import { newKey, PostgresLab } from '../../support/postgres/postgres-lab.js';

const WAIT = { waitMs: 20_000 };

let lab: PostgresLab;
let bouncer: PgBouncer;
beforeAll(async () => {
  lab = await PostgresLab.start();
  bouncer = await PgBouncer.start(lab.server);
  return async () => {
    await bouncer[Symbol.asyncDispose]();
    await lab[Symbol.asyncDispose]();
  };
});
afterEach(() => lab.reset());

const open = (listenUrl?: string) =>
  lab.open({}, { connectionString: bouncer.uri, pooled: true, listenUrl, lanes: 3 });

describe('behind PgBouncer in transaction mode', () => {
  it('an app without `pooled: true` does not start, and the error says what to set', async () => {
    const opened = lab.open({}, { connectionString: bouncer.uri });
    await expect(opened.manager.open()).rejects.toThrow(/Set pooled: true, and listenUrl/);
  });

  it.each([
    ['without notifications', undefined],
    ['with a listenUrl past it', () => lab.server.uri],
  ])('processes never overlap, and no update is lost: %s', async (_, listenUrl) => {
    const services = Array.from({ length: 3 }, () => open(listenUrl?.()));
    const key = newKey();
    let [inside, counter] = [0, 0];
    const section = async (): Promise<void> => {
      expect((inside += 1)).toBe(1);
      const before = counter;
      await lab.query('SELECT 1');
      counter = before + 1;
      inside -= 1;
    };
    const callers = services.flatMap(({ locks }) => [locks, locks]);
    await Promise.all(
      callers.map(async (locks) => {
        for (let i = 0; i < 10; i += 1) await locks.withLock(key, WAIT, section);
      }),
    );
    expect(counter).toBe(10 * callers.length);
    await lab.nothingLeft(...services);
  });

  it('a waiter with a listenUrl past it is notified', async () => {
    const [holder, waiter] = [open(), open(lab.server.uri)];
    const lease = await holder.locks.acquire(newKey());
    const waiting = waiter.locks.acquire(lease.key, WAIT);
    await lab.waiting(lease.key);
    await until(async () => (await lab.backends('LISTEN', 'idle')).length === 1, { what: 'it listens' });
    await lease.release();
    await (await waiting).release();
    expect(waiter.log).toEqual([]);
  });

  it('permits are counted over processes', async () => {
    const [one, other] = [open(), open()];
    const permit = await one.locks.permits('door', { permits: 1 }).acquire();
    expect(await other.locks.permits('door', { permits: 1 }).tryAcquire()).toBeNull();
    await permit.release();
    await (await other.locks.permits('door', { permits: 1 }).acquire()).release();
  });
});
