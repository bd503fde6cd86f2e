import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { holdFive } from '../../support/sql/held-keys.js';
import { claimFor, LONG_LEASE_MS } from '../../support/stores/harness.js';
import { until } from '../../support/async.js';
import { ACQUIRE, newKey, NOW, PostgresLab, rowName } from '../../support/postgres/postgres-lab.js';
import { storeHost } from '../../support/stores/store-host.js';

const ROUNDS = 20;
const UNKNOWN = { code: 'LOCK_STORE_FAILED', outcome: 'unknown' };

const AN_HOUR_US = 3_600_000_000;

let lab: PostgresLab;
beforeAll(async () => {
  lab = await PostgresLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

/** Resolves with the connection in which an acquire waits for a row in the server. */
const stuck = (): Promise<number> =>
  until(async () => (await lab.acquires())[0], { what: 'an acquire waits for a row' });

const noneUnderWay = (): Promise<true> =>
  until(async () => (await lab.acquires()).length === 0, {
    what: 'no acquire is under way',
  });

describe('an acquire that waits for a row in the server leaves no hold', () => {
  it.each<[string, (pid: number, cut: () => void) => unknown]>([
    ['the network cuts its connection', (_pid, cut) => cut()],
    ['an operator ends its connection', (pid) => lab.query(`SELECT pg_terminate_backend(${pid})`)],
  ])('when %s', async (_, fault) => {
    const proxy = await lab.proxy();
    // Only the undo ends the statement: the server would wait for the row for half of this time.
    const commandTimeoutMs = 30_000;
    const options = { connectionString: lab.uriThrough(proxy), lanes: 1, commandTimeoutMs };
    const { locks } = lab.open({ watchdogMs: 120_000 }, options);
    const key = newKey();
    await locks.withLock(key, () => undefined);
    for (let round = 0; round < ROUNDS; round += 1) {
      const foreign = await lab.foreignTransaction(key);
      const acquiring = locks.tryAcquire(key).catch((error: unknown) => error);
      await fault(await stuck(), () => proxy.find(ACQUIRE).forEach((connection) => connection.cut()));
      expect(await acquiring).toMatchObject(UNKNOWN);
      // The undo ends the statement, or else the row would now become a hold.
      await noneUnderWay();
      await foreign[Symbol.asyncDispose]();
      await until(() => locks.usage.undoing === 0, { what: 'the undo is certain' });
      expect(await lab.isHeld(key)).toBe(false);
    }
  });

  it('when the server gives the row up: that is certain, so nothing has to be undone', async () => {
    const { locks } = lab.open({}, { commandTimeoutMs: 1_000 });
    const key = newKey();
    await locks.withLock(key, () => undefined);
    await using foreign = await lab.foreignTransaction(key);
    await expect(locks.tryAcquire(key)).rejects.toMatchObject({
      outcome: 'not-executed',
      message: expect.stringContaining('could not obtain lock') as string,
    });
    expect(locks.usage.undoing).toBe(0);
    await foreign[Symbol.asyncDispose]();
    expect(await lab.isHeld(key)).toBe(false);
  });
});

describe('an undo', () => {
  it('is not certain behind a pooler, and never ends the connection of another', async () => {
    const proxy = await lab.proxy();
    const pooled = { connectionString: lab.uriThrough(proxy), pooled: true, lanes: 1 };
    const { kinds } = lab.store(pooled);
    const claim = claimFor(newKey());
    const foreign = await lab.foreignTransaction(claim.finalKey);
    const stop = proxy.onData((connection, _direction, chunk) => {
      if (chunk.includes('INSERT INTO')) setImmediate(() => connection.cut());
    });
    const failure = await kinds.exclusive.acquire(claim).catch((error: unknown) => error);
    stop();
    expect(failure).toMatchObject({ outcome: 'unknown' });
    await expect(kinds.exclusive.release(claim, { uncertain: failure as never })).rejects.toMatchObject({
      outcome: 'unknown',
    });
    await foreign[Symbol.asyncDispose]();
  });
});

describe('a server that is killed', () => {
  it('keeps the holds: leases run on, and tokens grow; a release may be lost until the lease ends', async () => {
    await using own = await PostgresLab.start();
    const { locks, lost } = own.open({ watchdogMs: 30_000 });
    const brief = own.open({ watchdogMs: 3_000 }).locks;
    const lease = await locks.acquire(newKey());
    const token = await brief.withLock('other', (held) => held.tokenFor('other'));
    await own.server.kill('SIGKILL');
    await expect(locks.acquire(newKey())).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED' });
    await own.server.restart();
    await own.reconnect();
    expect(await until(() => lease.verify())).toBe(true);
    expect(await locks.tryAcquire(lease.key)).toBeNull();
    const next = await brief.withLock('other', { waitMs: 10_000 }, (held) => held.tokenFor('other'));
    expect(next).toBeGreaterThan(token);
    expect(await lease.release()).toBe('released');
    expect(lost).toEqual([]);
  });
});

describe('a server that becomes a standby', () => {
  it('executes no request, is refused at the start, and grants locks again when it is promoted', async () => {
    await using own = await PostgresLab.start();
    const { locks } = own.open();
    await locks.withLock(newKey(), () => undefined);
    const [row] = await own.query('SHOW data_directory');
    const signal = join(String(row!['data_directory']), 'standby.signal');
    await writeFile(signal, '');
    await chmod(signal, 0o666);
    await own.server.restart();
    const refusal = { outcome: 'not-executed', message: expect.stringContaining('read-only') as string };
    await until(() =>
      locks.acquire(newKey()).then(
        () => false,
        (error: Error) => error.message.includes('read-only'),
      ),
    );
    await expect(locks.acquire(newKey())).rejects.toMatchObject(refusal);
    await expect(own.store().open(storeHost())).rejects.toThrow(/read-only.*address of the primary/);
    await own.server.admin('SELECT pg_promote()');
    expect(await until(() => locks.withLock(newKey(), () => 'ran'))).toBe('ran');
    await own.reconnect();
  });
});

describe('a foreign transaction that has rows locked', () => {
  it('delays the renewal of no other hold', async () => {
    const opened = lab.open({ watchdogMs: 3_000 }, { commandTimeoutMs: 1_500, lanes: 1 });
    const leases = await Promise.all(Array.from({ length: 20 }, () => opened.locks.acquire(newKey())));
    const permit = await opened.locks.permits('door', { permits: 2 }).acquire();
    const locked = leases.slice(0, 2);
    const foreign = await lab.foreignTransaction(...locked.map(({ key }) => key));
    await until(() => locked.every((lease) => lease.signal.aborted), { what: 'their time is over' });
    await foreign[Symbol.asyncDispose]();
    expect(leases.slice(2).every((lease) => !lease.signal.aborted && lease.remainingMs() > 0)).toBe(true);
    expect(permit.signal.aborted).toBe(false);
    expect(opened.lost.map(({ reason }) => reason)).toEqual(['expired', 'expired']);
  });

  it('delays other keys of a connection only once, however many rows are locked', async () => {
    const { locks } = lab.open({}, { lanes: 1 });
    const keys = Array.from({ length: 6 }, () => newKey());
    for (const key of keys) await locks.withLock(key, () => undefined);
    const [free, ...locked] = keys as [string, ...string[]];
    const foreign = await lab.foreignTransaction(...locked);
    const asked = locked.map((key) => locks.acquire(key, { waitMs: 20_000 }));
    await stuck();
    const began = performance.now();
    for (let i = 0; i < 5; i += 1) await locks.withLock(free, () => undefined);
    // Each of the locked rows was waited for once, for 200 ms.
    expect(performance.now() - began).toBeLessThan(5_000);
    await foreign[Symbol.asyncDispose]();
    for (const lease of await Promise.all(asked)) await lease.release();
  });

  it.each(['exclusive', 'permit'] as const)(
    'of the kind %s, skips it and renews the others',
    async (kind) => {
      const store = lab.store({ lanes: 1, commandTimeoutMs: 1_500 });
      const { keys, extend } = await holdFive(store, kind);
      await using _foreign = await lab.foreignTransaction(keys[0]);
      const replies = await extend();
      expect(replies.map(({ status }) => status)).toEqual(['failed', 'held', 'held', 'held', 'held']);
      expect(replies[0]).toMatchObject({ cause: { outcome: 'not-executed', transient: true } });
    },
  );

  it.each(['exclusive', 'permit'] as const)(
    'of the kind %s, is not waited for before the others are renewed',
    async (kind) => {
      // The server would wait for the row for half of this time.
      const store = lab.store({ lanes: 1, commandTimeoutMs: 30_000 });
      const { keys, extend } = await holdFive(store, kind);
      const soonestOfOthers = async () => {
        const [row] = await lab.query(
          `SELECT min(until) AS until FROM nest_lock WHERE owner <> '' AND name <> '${rowName(keys[0])}'`,
        );
        return Number(row!['until']);
      };
      const before = await soonestOfOthers();
      const foreign = await lab.foreignTransaction(keys[0]);
      const extending = extend();
      await until(async () => (await soonestOfOthers()) > before, { what: 'the others are renewed' });
      await foreign[Symbol.asyncDispose]();
      expect((await extending).map(({ status }) => status)).toEqual(keys.map(() => 'held'));
    },
  );

  it('and changes it: the time and the token of a grant are those after the wait', async () => {
    const { kinds } = lab.store({ lanes: 1 });
    const key = newKey();
    const claim = claimFor(`lock:${key}`);
    await kinds.exclusive.release((await kinds.exclusive.acquire(claim), claim));
    const foreign = await lab.foreignTransaction(key);
    const acquiring = kinds.exclusive.acquire(claimFor(claim.finalKey));
    await stuck();
    const [clock] = await lab.query(`SELECT ${NOW} AS now`);
    // As a holder in between would have left it.
    const between = `fence = ${Number(clock!['now']) + AN_HOUR_US}, until = ${clock!['now']}`;
    await foreign.query(`UPDATE nest_lock SET ${between} WHERE name = '${rowName(key)}'; COMMIT`);
    expect(await acquiring).toMatchObject({ token: Number(clock!['now']) + AN_HOUR_US + 1 });
    const [row] = await lab.query(`SELECT until, since FROM nest_lock WHERE name = '${rowName(key)}'`);
    expect(Number(row!['until'])).toBeGreaterThan(Number(clock!['now']) + LONG_LEASE_MS * 1_000);
    expect(Number(row!['since'])).toBeGreaterThan(Number(clock!['now']));
  });
});

describe('permits', () => {
  it('are counted after the wait for the row of the key: never more at once than there are', async () => {
    const [a, b] = [lab.store({ lanes: 1 }), lab.store({ lanes: 1 })];
    const key = newKey();
    const permit = () =>
      ({ ...claimFor(`lock:${key}`), kind: 'permit', tokens: 0, of: 1, owner: claimFor('x').owner }) as const;
    const first = permit();
    await a.kinds.permit.acquire(first);
    await a.kinds.permit.release(first);
    const foreign = await lab.foreignTransaction(key);
    const acquiring = [a, b].map((store) => store.kinds.permit.acquire(permit()));
    await until(async () => (await lab.backends('FOR UPDATE', 'active')).length === 2, { what: 'both wait' });
    await foreign[Symbol.asyncDispose]();
    const statuses = (await Promise.all(acquiring)).map(({ status }) => status);
    expect(statuses.sort()).toEqual(['granted', 'taken']);
  });
});
