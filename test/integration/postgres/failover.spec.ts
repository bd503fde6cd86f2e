import { describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { newKey, PostgresLab, rowName } from '../../support/postgres/postgres-lab.js';
import { PostgresServer } from '../../support/servers/postgres-server.js';

// Also a first connection beside other work comes within this time.
const commandTimeoutMs = 1_500;
const WAIT = { waitMs: 20_000 };

const startPair = async (synchronous: boolean) => {
  const lab = await PostgresLab.start();
  const standby = lab.track(await PostgresServer.standbyOf(lab.server));
  const caughtUp = () =>
    until(
      async () => {
        const [row] = await lab.query(
          'SELECT replay_lsn = pg_current_wal_lsn() AS all, sync_state FROM pg_stat_replication',
        );
        return row?.['all'] === true && (row['sync_state'] === 'sync') === synchronous;
      },
      { what: 'the standby has all' },
    );
  if (synchronous) {
    await lab.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
    await lab.query('SELECT pg_reload_conf()');
  }
  await caughtUp();
  const proxy = await lab.proxy();
  const open = () =>
    lab.open({ watchdogMs: 10_000 }, { connectionString: lab.uriThrough(proxy), commandTimeoutMs });
  const failOver = async (): Promise<void> => {
    await standby.admin('SELECT pg_promote()');
    proxy.target = standby;
    proxy.cut();
  };
  return { lab, standby, caughtUp, open, failOver };
};

describe('after a failover to a standby', () => {
  it.each([
    ['synchronous', true],
    ['asynchronous and without a lag', false],
  ])('that is %s, no grant is missing, tokens grow on, and waiters acquire', async (_, synchronous) => {
    const { standby, caughtUp, open, failOver, ...pair } = await startPair(synchronous);
    await using lab = pair.lab;
    const [holder, waiter] = [open(), open()];
    const granted = new Map<string, number>();
    let killed = false;
    const load = Array.from({ length: 8 }, async (_worker, i) => {
      for (let n = 0; !killed; n += 1) {
        const key = `load-${i}-${n}`;
        const lease = await holder.locks.tryAcquire(key).catch(() => null);
        if (lease) granted.set(key, lease.tokenFor(key));
      }
    });
    const held = await holder.locks.acquire(newKey());
    const waiting = waiter.locks.acquire(held.key, WAIT);
    await lab.waiting(held.key);
    await until(() => granted.size > 100, { what: 'a hundred grants' });
    if (!synchronous) {
      killed = true;
      await Promise.all(load);
      await caughtUp();
    }
    await lab.server.kill('SIGKILL');
    killed = true;
    await failOver();
    await Promise.all(load);

    const rows = await (await standby.adminConnection('app')).query('SELECT name, fence FROM nest_lock');
    const fences = new Map(
      rows.rows.map(({ name, fence }: { name: string; fence: string }) => [name, Number(fence)]),
    );
    for (const [key, token] of granted) expect(fences.get(rowName(key)), key).toBeGreaterThanOrEqual(token);

    await until(() => held.verify(), { what: 'the holder has its lock' });
    expect(holder.lost).toEqual([]);
    const token = held.tokenFor(held.key);
    expect(await held.release()).toBe('released');
    const next = await waiting;
    expect(next.tokenFor(next.key)).toBeGreaterThan(token);
    await next.release();
  });

  it('that lacks the last commits, another caller acquires, with a larger token, and the first is notified', async () => {
    const { standby, open, failOver, ...pair } = await startPair(false);
    await using lab = pair.lab;
    const [first, second] = [open(), open()];
    const key = newKey();
    await first.locks.withLock(key, () => undefined);
    await standby.kill('SIGQUIT');
    const lost = await first.locks.acquire(key);
    await lab.server.kill('SIGKILL');
    await standby.restart();
    await failOver();
    const lease = await until(() => second.locks.tryAcquire(key).catch(() => null), { what: 'the lock' });
    expect(lease.tokenFor(key)).toBeGreaterThan(lost.tokenFor(key));
    await until(() => lost.verify().then((isHeld) => !isHeld), { what: 'the first holder is told' });
    expect(lost.signal.aborted).toBe(true);
    await lease.release();
  });
});
