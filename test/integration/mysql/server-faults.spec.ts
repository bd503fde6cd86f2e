import type { RowDataPacket } from 'mysql2/promise';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Lease } from 'nest-redis-lock';
import { until } from '../../support/async.js';
import { MysqlLab, newKey, NOW, rowName } from '../../support/mysql/mysql-lab.js';
import { ServerClock } from '../../support/servers/server-clock.js';
import { holdFive } from '../../support/sql/held-keys.js';

// Also a first connection beside other work comes within this time.
const commandTimeoutMs = 1_500;
const WAIT = { waitMs: 20_000 };

let lab: MysqlLab;
beforeAll(async () => {
  lab = await MysqlLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

/** Returns a counter of the server. */
const status = async (name: string): Promise<number> => {
  const [row] = await lab.query(`SHOW GLOBAL STATUS LIKE '${name}'`);
  return Number((row as unknown as { Value: string }).Value);
};

const tokenOf = (lease: Lease): number => lease.tokenFor(lease.key);

/** A holder and a waiter of one key. */
const holderAndWaiter = async () => {
  const [holder, waiter] = [lab.open({}, { commandTimeoutMs }), lab.open({}, { commandTimeoutMs })];
  const lease = await holder.locks.acquire(newKey());
  const waiting = waiter.locks.acquire(lease.key, WAIT);
  await lab.waiting(lease.key);
  return { holder, waiter, lease, waiting };
};

describe('a lock outlives the fault of its server', () => {
  it.each<[string, () => Promise<void>]>([
    [
      'when the server is killed and restarted',
      async () => {
        await lab.server.kill('SIGKILL');
        await lab.server.restart();
      },
    ],
    [
      'when the server stops for longer than the time-out of a command',
      async () => {
        await lab.server.kill('SIGSTOP');
        const { locks } = lab.open({}, { commandTimeoutMs });
        const acquiring = locks.acquire(newKey()).catch((error: unknown) => error);
        const error = await acquiring.finally(() => lab.server.kill('SIGCONT'));
        expect(error).toMatchObject({ code: 'LOCK_STORE_FAILED' });
      },
    ],
    [
      'when all connections are killed',
      async () => {
        for (const id of await lab.connections())
          await lab.query(`KILL CONNECTION ${id}`).catch(() => undefined);
      },
    ],
  ])('%s: the holder keeps it, and the waiter acquires it later with a greater token', async (_, fault) => {
    const { holder, waiter, lease, waiting } = await holderAndWaiter();
    await fault();
    await until(() => lease.verify(), { what: 'the holder has it' });
    expect(holder.lost).toEqual([]);
    expect(await lease.release()).toBe('released');
    const next = await waiting;
    expect(tokenOf(next)).toBeGreaterThan(tokenOf(lease));
    await next.release();
    await lab.nothingLeft(holder, waiter);
  });

  it('a request that a stopped server has taken leaves no hold when the server goes on', async () => {
    const { locks } = lab.open({}, { commandTimeoutMs });
    const key = newKey();
    await locks.withLock(key, () => undefined);
    await lab.server.kill('SIGSTOP');
    const acquiring = locks.acquire(key).catch((error: unknown) => error);
    const error = await acquiring.finally(() => lab.server.kill('SIGCONT'));
    expect(error).toMatchObject({ outcome: 'unknown' });
    await until(() => locks.usage.undoing === 0, { what: 'the undo is certain' });
    expect(await lab.isHeld(key)).toBe(false);
  });
});

it('a server that hangs keeps no socket of a closed store open, and so no process alive', async () => {
  const sockets = (): number => process.getActiveResourcesInfo().filter((kind) => /^TCP/.test(kind)).length;
  const before = sockets();
  const { locks, manager } = lab.open({}, { commandTimeoutMs });
  await locks.withLock(newKey(), () => undefined);
  await lab.server.kill('SIGSTOP');
  try {
    await manager.close();
    await until(() => sockets() <= before, { what: 'the sockets are closed' });
  } finally {
    await lab.server.kill('SIGCONT');
  }
});

it('a server without room for a prepared statement gets its text', async () => {
  await lab.query('SET GLOBAL max_prepared_stmt_count = 0');
  try {
    const { locks } = lab.open();
    await expect(locks.withLock(newKey(), () => 'done')).resolves.toBe('done');
  } finally {
    await lab.query('SET GLOBAL max_prepared_stmt_count = DEFAULT');
  }
});

describe('a server that becomes read-only', () => {
  it('refuses locks, all connections are opened again, and the holder keeps its lock', async () => {
    const { locks } = lab.open({}, { commandTimeoutMs });
    const keys = Array.from({ length: 12 }, () => newKey());
    const leases = await locks.acquire(keys);
    const before = await lab.connections();
    await lab.query('SET GLOBAL read_only = 1');
    try {
      const refusal = { outcome: 'not-executed', message: expect.stringContaining('read-only') as string };
      await expect(locks.acquire(newKey())).rejects.toMatchObject(refusal);
    } finally {
      await lab.query('SET GLOBAL read_only = 0');
    }
    await until(() => locks.withLock(newKey(), () => true));
    expect(await leases.verify()).toBe(true);
    await locks.ping();
    await until(async () => (await lab.connections()).every((id) => !before.includes(id)));
    expect(await leases.release()).toBe('released');
  });
});

describe('a server without free connections', () => {
  it('fails what needs a connection; locks on open connections go on, and others work later', async () => {
    await until(async () => (await lab.connections()).length === 0, { what: 'earlier connections are gone' });
    const old = lab.open({}, { commandTimeoutMs, lanes: 1 });
    const key = newKey();
    await old.locks.withLock(key, () => undefined);
    await old.locks.ping();
    // The lane for locks and the lane for releases; the connections of the start check are gone.
    const oldOnes = 2;
    await until(async () => (await lab.connections()).length === oldOnes, { what: 'the check is over' });
    const admin = await lab.server.adminConnection();
    const taken = [admin];
    const fresh = lab.open({}, { commandTimeoutMs });
    // A closed connection counts until the server has noticed, and must not leave its place later.
    const isFull = async (): Promise<boolean> => {
      const another = await lab.server.adminConnection().catch(() => undefined);
      if (another) taken.push(another);
      const [rows] = await admin.query<RowDataPacket[]>("SHOW GLOBAL STATUS LIKE 'Threads_connected'");
      return !another && Number(rows[0]!['Value']) === taken.length + oldOnes;
    };
    try {
      await admin.query('SET GLOBAL max_connections = 10');
      await until(isFull, { what: 'no connection is free' });
      await fresh.manager.open();
      await expect(fresh.locks.acquire(newKey())).rejects.toMatchObject({
        outcome: 'not-executed',
        message: expect.stringMatching(/Too many connections/) as string,
      });
      expect(await old.locks.withLock(key, () => 'ran')).toBe('ran');
    } finally {
      await admin.query('SET GLOBAL max_connections = 151');
      for (const connection of taken) connection.destroy();
    }
    await until(() => fresh.locks.withLock(newKey(), () => true), { what: 'locks work again' });
  });
});

describe('a foreign transaction that has a row locked', () => {
  it('delays the renewal of no other hold', async () => {
    const opened = lab.open({ watchdogMs: 3_000 }, { commandTimeoutMs: 1_500, lanes: 1 });
    const leases = await Promise.all(Array.from({ length: 20 }, () => opened.locks.acquire(newKey())));
    const [locked, others] = [leases.slice(0, 3), leases.slice(3)];
    const foreign = await Promise.all(locked.map(({ key }) => lab.foreignTransaction(key)));
    // Longer than a whole lease of the holds that cannot be renewed.
    await until(() => locked.every((lease) => lease.signal.aborted), { what: 'their time is over' });
    for (const one of foreign) await one[Symbol.asyncDispose]();
    expect(others.every((lease) => !lease.signal.aborted && lease.remainingMs() > 0)).toBe(true);
    expect(opened.lost.map(({ reason }) => reason)).toEqual(['expired', 'expired', 'expired']);
    expect(await Promise.all(others.map((lease) => lease.release()))).not.toContain('lost');
  });

  it.each(['exclusive', 'permit'] as const)(
    'of the kind %s, skips it and renews the others',
    async (kind) => {
      const store = lab.store({ lanes: 1, commandTimeoutMs: 1_500 });
      const { keys, extend } = await holdFive(store, kind);
      await using _foreign = await lab.foreignTransaction(keys[0]);
      const waits = await status('Innodb_row_lock_waits');
      const replies = await extend();
      expect(replies.map(({ status: state }) => state)).toEqual(['failed', 'held', 'held', 'held', 'held']);
      expect(replies[0]).toMatchObject({ cause: { outcome: 'not-executed', transient: true } });
      expect(await status('Innodb_row_lock_waits')).toBe(waits);
    },
  );

  it('delays no release of another key, and the acquire of its own key is repeated', async () => {
    const { locks } = lab.open({}, { lanes: 1 });
    const [free, locked] = [await locks.acquire(newKey()), newKey()];
    await locks.withLock(locked, () => undefined);
    const foreign = await lab.foreignTransaction(locked);
    expect(await free.release()).toBe('released');
    const acquiring = locks.acquire(locked, WAIT);
    const before = { tries: await status('Com_rollback'), waits: await status('Innodb_row_lock_waits') };
    await until(async () => (await status('Com_rollback')) > before.tries + 3, { what: 'repeated' });
    // Only the first try waits in the server, for 1 s. It may have begun before.
    expect(await status('Innodb_row_lock_waits')).toBeLessThanOrEqual(before.waits + 1);
    await foreign[Symbol.asyncDispose]();
    await (await acquiring).release();
  });

  it('and wants a second one, makes a deadlock: the acquire that the server ends is repeated', async () => {
    const { locks } = lab.open();
    const door = locks.permits('door', { permits: 2 });
    const lease = await door.acquire();
    let acquiring: ReturnType<typeof door.acquire> | undefined;
    await lab.started();
    const before = await lab.deadlocks();
    const foreign = await lab.server.adminConnection();
    try {
      // Changes many rows, so the server ends the other transaction.
      await foreign.query(`USE app; START TRANSACTION; INSERT INTO nest_lock (name)
WITH RECURSIVE rows_of AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM rows_of WHERE n < 500) SELECT n FROM rows_of;
SELECT * FROM nest_lock WHERE name = '${rowName('door')}' AND member > '' FOR UPDATE`);
      acquiring = door.acquire(WAIT);
      await until(async () => (await lab.blocked()) > 0, { what: 'an acquire waits' });
      await foreign.query(
        `SELECT * FROM nest_lock WHERE name = '${rowName('door')}' AND member = '' FOR UPDATE`,
      );
      expect(await lab.deadlocks()).toBe(before + 1);
    } finally {
      foreign.destroy();
    }
    await (await acquiring).release();
    expect(await lease.release()).toBe('released');
  });
});

describe('a server whose clock is stepped', () => {
  it('back keeps released keys free, and tokens grow on; ahead ends leases early', async () => {
    const clock = await ServerClock.create();
    await using stepped = await MysqlLab.start({ equipment: clock });
    const { locks } = stepped.open();
    const token = () => locks.withLock('key', (lease) => lease.tokenFor('key'));
    const serverTime = async () => Number((await stepped.query(`SELECT ${NOW} AS now`))[0]!['now']);
    const held = await locks.acquire('held');
    const [first, before] = [await token(), await serverTime()];
    await stepped.releaseBeforeDeadWaiters(locks);
    clock.jump(-3_600_000);
    await until(async () => (await serverTime()) < before - 3_000_000_000, { what: 'the clock is back' });
    const second = await token();
    expect(second).toBeGreaterThan(first);
    expect(await held.verify()).toBe(true);
    await stepped.allFree(locks);
    clock.jump(7_200_000);
    await until(async () => (await serverTime()) > before + 3_000_000_000, { what: 'the clock is ahead' });
    expect(await token()).toBeGreaterThan(second);
    expect(await held.verify()).toBe(false);
  });
});
