import type { Client } from 'pg';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { ACQUIRE, newKey, NOW, PostgresLab, RELEASE } from '../../support/postgres/postgres-lab.js';
import { ServerClock } from '../../support/servers/server-clock.js';

// Also a first connection beside other work comes within this time.
const commandTimeoutMs = 1_500;
const WAIT = { waitMs: 20_000 };

let lab: PostgresLab;
beforeAll(async () => {
  lab = await PostgresLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

describe('a lock outlives the fault of its server', () => {
  it.each<[string, () => Promise<unknown>]>([
    [
      'when the server is killed and restarted',
      async () => {
        await lab.server.kill('SIGKILL');
        await lab.server.restart();
        await lab.reconnect();
      },
    ],
    [
      'when all connections are ended',
      () => lab.query("SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE usename = 'app'"),
    ],
  ])('%s: the holder keeps it, and the waiter acquires it later with a greater token', async (_, fault) => {
    const [holder, waiter] = [lab.open({}, { commandTimeoutMs }), lab.open({}, { commandTimeoutMs })];
    const lease = await holder.locks.acquire(newKey());
    const waiting = waiter.locks.acquire(lease.key, WAIT);
    await lab.waiting(lease.key);
    await fault();
    await until(() => lease.verify(), { what: 'the holder has it' });
    expect(holder.lost).toEqual([]);
    expect(await lease.release()).toBe('released');
    const next = await waiting;
    expect(next.tokenFor(next.key)).toBeGreaterThan(lease.tokenFor(lease.key));
    await next.release();
    await lab.nothingLeft(holder, waiter);
  });

  it('a request that a stopped server has taken leaves no hold when the server goes on', async () => {
    const { locks } = lab.open({}, { commandTimeoutMs, lanes: 1 });
    const key = newKey();
    await locks.withLock(key, () => undefined);
    const [pid] = await lab.backends(RELEASE);
    process.kill(pid!, 'SIGSTOP');
    const acquiring = locks.acquire(key).catch((error: unknown) => error);
    const error = await acquiring.finally(() => process.kill(pid!, 'SIGCONT'));
    expect(error).toMatchObject({ outcome: 'unknown' });
    await until(() => locks.usage.undoing === 0, { what: 'the undo is certain' });
    expect(await lab.isHeld(key)).toBe(false);
  });
});

describe('a server that becomes read-only while connections are open', () => {
  it('refuses locks, the connection is opened again, and the holder keeps its lock', async () => {
    const { locks } = lab.open({}, { commandTimeoutMs, lanes: 1 });
    const lease = await locks.acquire(newKey());
    const lane = () => lab.backends(ACQUIRE);
    const [before] = await lane();
    const setReadOnly = async (value: string): Promise<void> => {
      await lab.query(`ALTER SYSTEM SET default_transaction_read_only = ${value}`);
      await lab.query('SELECT pg_reload_conf()');
    };
    await setReadOnly('on');
    const refused = () =>
      locks.acquire(newKey()).then(
        () => undefined,
        (error: unknown) => error,
      );
    const refusal = await until(refused).finally(() => setReadOnly('off'));
    expect(refusal).toMatchObject({
      outcome: 'not-executed',
      message: expect.stringContaining('read-only') as string,
    });
    await until(() => locks.withLock(newKey(), () => true));
    expect(await lab.backends(RELEASE)).not.toContain(before);
    expect(await lease.verify()).toBe(true);
    expect(await lease.release()).toBe('released');
  });
});

describe('a server without free connections', () => {
  it('fails what needs a connection; locks on open connections go on, and others work later', async () => {
    await using own = await PostgresLab.start({ args: ['max_connections=12'] });
    const old = own.open({}, { commandTimeoutMs, lanes: 1 });
    const key = newKey();
    await old.locks.withLock(key, () => undefined);
    await old.locks.ping();
    const taken: Client[] = [];
    const fresh = own.open({}, { commandTimeoutMs });
    // The administrator may take the reserved ones, too.
    const isFull = async (): Promise<boolean> => {
      const another = await own.server.adminConnection().catch(() => undefined);
      if (another) taken.push(another);
      return !another;
    };
    await until(isFull, { what: 'no connection is free' });
    await fresh.manager.open();
    await expect(fresh.locks.acquire(newKey())).rejects.toMatchObject({
      outcome: 'not-executed',
      message: expect.stringMatching(/too many clients/) as string,
    });
    expect(await old.locks.withLock(key, () => 'ran')).toBe('ran');
    for (const connection of taken) await connection.end();
    await until(() => fresh.locks.withLock(newKey(), () => true), { what: 'locks work again' });
  });
});

describe('a server whose clock is stepped', () => {
  it('back keeps released keys free, and tokens grow on; ahead ends leases early', async () => {
    const clock = await ServerClock.create();
    await using stepped = await PostgresLab.start({ equipment: clock });
    const { locks } = stepped.open();
    const token = () => locks.withLock('key', (lease) => lease.tokenFor('key'));
    const serverTime = async () => Number((await stepped.query(`SELECT ${NOW} AS now`))[0]!['now']);
    const held = await locks.acquire('held');
    const forced = await locks.acquire('forced');
    const [first, before] = [await token(), await serverTime()];
    await locks.forceUnlock('forced');
    await stepped.releaseBeforeDeadWaiters(locks);
    clock.jump(-3_600_000);
    await until(async () => (await serverTime()) < before - 3_000_000_000, { what: 'the clock is back' });
    const second = await token();
    expect(second).toBeGreaterThan(first);
    expect(await held.verify()).toBe(true);
    expect(await forced.verify()).toBe(false);
    expect(await locks.tryWithLock('forced', () => undefined)).toMatchObject({
      ran: true,
    });
    await stepped.allFree(locks);
    clock.jump(7_200_000);
    await until(async () => (await serverTime()) > before + 3_000_000_000, { what: 'the clock is ahead' });
    expect(await token()).toBeGreaterThan(second);
    expect(await held.verify()).toBe(false);
  });
});
