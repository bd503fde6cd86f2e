import { describe, expect, it } from 'vitest';
import { until, within } from '../../support/async.js';
import { MysqlLab, newKey, rowName } from '../../support/mysql/mysql-lab.js';
import { MysqlServer } from '../../support/servers/mysql-server.js';

// Also a first connection beside other work comes within this time.
const commandTimeoutMs = 1_500;
const BINLOG = ['--log-bin=binlog', '--log-slave-updates', '--gtid-strict-mode=1'];
const WAIT = { waitMs: 20_000 };

const startPair = async (semiSync: boolean) => {
  const on = semiSync ? 1 : 0;
  const primaryArgs = [`--rpl-semi-sync-master-enabled=${on}`, '--rpl-semi-sync-master-timeout=10'];
  const [lab, replica] = await Promise.all([
    MysqlLab.start({ args: ['--server-id=1', ...BINLOG, ...primaryArgs] }),
    MysqlServer.start({
      args: ['--server-id=2', ...BINLOG, '--read-only=1', `--rpl-semi-sync-slave-enabled=${on}`],
    }),
  ]);
  const { host, port } = lab.server;
  await lab.query(`CREATE USER copy@'%' IDENTIFIED BY 'secret'; GRANT REPLICATION SLAVE ON *.* TO copy@'%'`);
  await replica.admin(`DROP DATABASE app; DROP USER app@'%'; RESET MASTER; SET GLOBAL gtid_slave_pos = '';
CHANGE MASTER TO MASTER_HOST = '${host}', MASTER_PORT = ${port}, MASTER_USER = 'copy', MASTER_PASSWORD = 'secret', MASTER_USE_GTID = slave_pos;
START SLAVE`);
  lab.track(replica);
  const gtid = async (server: MysqlServer) =>
    (await server.admin('SELECT @@gtid_current_pos AS gtid'))[0]!['gtid'] as string;
  const caughtUp = () =>
    until(async () => (await gtid(replica)) === (await gtid(lab.server)), { what: 'the replica has all' });
  await caughtUp();
  if (semiSync) {
    const status = async () =>
      (await lab.query("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'"))[0]!['Value'];
    await until(async () => (await status()) === '1', { what: 'the replica acknowledges' });
    // From now on no grant is without a copy.
    await lab.query('SET GLOBAL rpl_semi_sync_master_timeout = 60000; FLUSH PRIVILEGES');
  }
  return { lab, replica, caughtUp };
};

const promote = async (replica: MysqlServer): Promise<void> => {
  const applied = async () =>
    /has read all relay log/i.test(
      String((await replica.admin('SHOW SLAVE STATUS'))[0]!['Slave_SQL_Running_State']),
    );
  await until(applied, { what: 'the replica has applied all it has' });
  await replica.admin('STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0');
};

describe('after a failover to a replica', () => {
  it.each([
    ['semi-sync', true],
    ['asynchronous and without a lag', false],
  ])('that is %s, no grant is missing, tokens grow on, and waiters acquire', async (_, semiSync) => {
    const { replica, caughtUp, ...pair } = await startPair(semiSync);
    await using lab = pair.lab;
    await using proxy = await lab.proxy();
    const open = () => lab.open({ watchdogMs: 10_000 }, { uri: lab.uriThrough(proxy), commandTimeoutMs });
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
    if (!semiSync) {
      killed = true;
      await Promise.all(load);
      await caughtUp();
    }
    await lab.server.kill('SIGKILL');
    killed = true;
    await promote(replica);
    proxy.target = replica;
    proxy.cut();
    await Promise.all(load);

    const rows = await replica.admin(`SELECT CONVERT(name USING utf8mb4) AS name, fence FROM app.nest_lock`);
    const fences = new Map(rows.map((row) => [row['name'] as string, row['fence'] as number]));
    for (const [key, token] of granted) expect(fences.get(rowName(key)), key).toBeGreaterThanOrEqual(token);

    await until(() => held.verify(), { what: 'the holder has its lock' });
    expect(holder.lost).toEqual([]);
    const token = held.tokenFor(held.key);
    expect(await held.release()).toBe('released');
    const next = await waiting;
    expect(next.tokenFor(next.key)).toBeGreaterThan(token);
    await next.release();
  });

  it('while the old primary lives on as a read-only server: pollers leave it, too', async () => {
    const { replica, caughtUp, ...pair } = await startPair(false);
    await using lab = pair.lab;
    await using proxy = await lab.proxy();
    // Without bells, which might lead a waiter to the new primary.
    const open = () => lab.open({}, { uri: lab.uriThrough(proxy), commandTimeoutMs, pooled: true });
    const [holder, waiter] = [open(), open()];
    const held = await holder.locks.acquire(newKey());
    const waiting = waiter.locks.acquire(held.key, WAIT);
    await lab.waiting(held.key);
    await lab.query('SET GLOBAL read_only = 1');
    await caughtUp();
    await promote(replica);
    proxy.target = replica;
    // Connections to the old primary stay open until the processes find out.
    const releasing = held.release().catch((error: unknown) => error);
    const next = await within(10_000, waiting, 'the waiter acquires');
    await releasing;
    await next.release();
    await holder.locks.withLock(newKey(), () => undefined);
    await lab.server.kill('SIGKILL');
    expect(await waiter.locks.withLock(newKey(), () => 'ran')).toBe('ran');
  });
});
