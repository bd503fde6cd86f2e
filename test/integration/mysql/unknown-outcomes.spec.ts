import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { ACQUIRE, MysqlLab, newKey, NOW } from '../../support/mysql/mysql-lab.js';

const ROUNDS = 30;
const UNKNOWN = { code: 'LOCK_STORE_FAILED', outcome: 'unknown' };
const RIGHTS = 'SELECT, INSERT, UPDATE, DELETE';

let lab: MysqlLab;
/** The smallest user: the right to end its own connections is everyone's. */
let user: string;
beforeAll(async () => {
  lab = await MysqlLab.start();
  await lab.query(
    `CREATE USER small@'%' IDENTIFIED BY 'secret'; GRANT ${RIGHTS} ON app.nest_lock TO small@'%'`,
  );
  user = `mysql://small:secret@${lab.server.host}`;
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

/** A service behind a proxy, and a free key whose row exists. */
const open = async (pooled = false, commandTimeoutMs = 2_000) => {
  const proxy = await lab.proxy();
  const store = { uri: `${user}:${proxy.port}/app`, lanes: 1, pooled, commandTimeoutMs };
  // The record of the process is a row, too: while another transaction locks the gap beside it, its INSERT would wait there.
  const { locks, manager } = lab.open({ watchdogMs: 60_000, holderInfo: false }, store);
  // What the start tries are acquires, too.
  await manager.open();
  const key = newKey();
  await locks.withLock(key, () => undefined);
  return { proxy, locks, key };
};

/** The connection in which an acquire waits for a row in the server. */
const stuck = (): Promise<number> =>
  until(async () => (await lab.acquires())[0], { what: 'an acquire waits for a row' });

const ended = (): Promise<unknown> =>
  until(async () => (await lab.acquires()).length === 0, { what: 'the acquire has ended' });

/** Expects the key to be free, and to stay so when all that was sent has been executed. */
const expectNoGhost = async (key: string): Promise<void> => {
  await ended();
  expect(await lab.isHeld(key)).toBe(false);
};

describe('an acquire that waits for a row in the server leaves no hold', () => {
  it.each<[string, (id: number, cut: () => void) => unknown]>([
    ['the network cuts its connection', (_id, cut) => cut()],
    ['an operator kills its connection', (id) => lab.query(`KILL CONNECTION ${id}`)],
    ['an operator kills its statement', (id) => lab.query(`KILL QUERY ${id}`)],
  ])('when %s', async (_, fault) => {
    const { proxy, locks, key } = await open();
    for (let round = 0; round < ROUNDS; round += 1) {
      const foreign = await lab.foreignTransaction(key);
      const acquiring = locks.tryAcquire(key).catch((error: unknown) => error);
      await fault(await stuck(), () => proxy.find(ACQUIRE).forEach((connection) => connection.cut()));
      expect(await acquiring).toMatchObject(UNKNOWN);
      // The undo has ended the statement, or else the row would now become a hold.
      await until(async () => (await lab.acquires()).length === 0, { timeoutMs: 600 });
      await foreign[Symbol.asyncDispose]();
      await until(() => locks.usage.undoing === 0, { what: 'the undo is certain' });
      await expectNoGhost(key);
    }
  });

  it('when its statement is killed, and the undo does not end a later request of the same connection', async () => {
    const { locks, key } = await open();
    const later = newKey();
    await locks.withLock(later, () => undefined);
    const foreign = [await lab.foreignTransaction(key), await lab.foreignTransaction(later)];
    const acquiring = locks.tryAcquire(key).catch((error: unknown) => error);
    const next = locks.acquire(later);
    const id = await stuck();
    await lab.query(`KILL QUERY ${id}`);
    expect(await acquiring).toMatchObject(UNKNOWN);
    await foreign[0]![Symbol.asyncDispose]();
    await until(() => locks.usage.undoing === 0, { what: 'the undo is certain' });
    await foreign[1]![Symbol.asyncDispose]();
    expect(await (await next).release()).toBe('released');
  });

  it('when its command time-out is over, and no other key of the connection is acquired twice', async () => {
    const { locks, key } = await open(false, 300);
    const foreign = await lab.foreignTransaction(key);
    const [first, ...others] = await Promise.allSettled([
      locks.tryAcquire(key),
      ...Array.from({ length: 5 }, () => locks.tryAcquire(newKey())),
    ]);
    expect(first).toMatchObject({ reason: UNKNOWN });
    for (const other of others) expect(other).toMatchObject({ reason: { outcome: 'not-executed' } });
    await until(async () => (await lab.acquires()).length === 0, { timeoutMs: 600 });
    await foreign[Symbol.asyncDispose]();
    await until(() => locks.usage.undoing === 0, { what: 'the undo is certain' });
    await lab.nothingLeft();
    expect(await lab.query(`SELECT COUNT(*) AS n FROM nest_lock WHERE until > ${NOW}`)).toEqual([{ n: 0 }]);
  });
});

describe('an acquire whose connection is cut', () => {
  it('in flight, at any byte and with many others beside it, leaves no hold', async () => {
    const { proxy, locks } = await open();
    let unknown = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const keys = Array.from({ length: 8 }, () => newKey('cut'));
      const acquiring = keys.map((key) => locks.tryAcquire(key));
      let chunks = round % 7;
      const stop = proxy.onData((connection) => {
        if (chunks-- === 0) connection.cut();
      });
      const outcomes = await Promise.allSettled(acquiring);
      stop();
      for (const outcome of outcomes) {
        if (outcome.status === 'fulfilled') await outcome.value?.release();
        else if ((outcome.reason as { outcome: string }).outcome === 'unknown') unknown += 1;
      }
      await until(() => Object.values(locks.usage).every((count) => count === 0));
      expect(await lab.query(`SELECT name FROM nest_lock WHERE owner <> '' AND until > ${NOW}`)).toEqual([]);
    }
    expect(unknown).toBeGreaterThan(ROUNDS / 3);
  });

  it('with pooled: true, is undone only when its lease is over', async () => {
    const { proxy, locks, key } = await open(true);
    const foreign = await lab.foreignTransaction(key);
    const startedAt = performance.now();
    const acquiring = locks.tryAcquire(key, { leaseMs: 1_200 }).catch((error: unknown) => error);
    await stuck();
    for (const connection of proxy.find(ACQUIRE)) connection.cut();
    expect(await acquiring).toMatchObject(UNKNOWN);
    await foreign[Symbol.asyncDispose]();
    await until(() => lab.isHeld(key), { what: 'the acquire was executed nevertheless' });
    expect(locks.usage.undoing).toBe(1);
    await until(() => locks.usage.undoing === 0, { what: 'the lease is over' });
    expect(performance.now() - startedAt).toBeGreaterThan(1_199);
    expect(await lab.isHeld(key)).toBe(false);
  });
});
