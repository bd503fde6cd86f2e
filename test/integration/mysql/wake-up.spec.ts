import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { MysqlLab, newKey, NOW, rowName } from '../../support/mysql/mysql-lab.js';
import { NOT_WOKEN_MS } from '../../support/stores/hot-key.js';

const WAIT = { waitMs: 20_000 };

let lab: MysqlLab;
beforeAll(async () => {
  lab = await MysqlLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

describe('a waiter', () => {
  it('is the first to get the key, also when a statement of another process has begun before the release', async () => {
    const [holder, waiter, other] = [lab.open(), lab.open(), lab.open()];
    const lease = await holder.locks.acquire(newKey());
    const waiting = waiter.locks.acquire(lease.key, WAIT);
    await lab.waiting(lease.key);
    const row = `name = '${rowName(lease.key)}' AND member = ''`;
    // The server tells a statement the time at which it began. To the other process the key is released in a second.
    const foreign = await lab.transaction(`SELECT * FROM nest_lock WHERE ${row} FOR UPDATE`);
    const trying = other.locks.tryAcquire(lease.key);
    await until(async () => (await lab.blocked()) > 0, { what: 'the other process waits for the row' });
    await foreign.query(`UPDATE nest_lock SET until = -(${NOW} + 1000000) WHERE ${row}; COMMIT`);
    expect(await trying).toBeNull();
    await (await waiting).release();
  });

  it('acquires the key while all bells are lost, and bells come back', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const parked = () => lab.underWay('SELECT IF(@bell%GET_LOCK%');
    /** Passes the key to the other service once a waiter hears the bell of the holder. */
    const passOn = async (isHeard: () => Promise<unknown>, fault = async () => undefined as void) => {
      for (const [holder, waiter] of [
        [one, two],
        [two, one],
      ] as const) {
        const lease = await holder.locks.acquire(key, WAIT);
        const waiting = waiter.locks.acquire(key, WAIT);
        await isHeard();
        await fault();
        const releasedAt = performance.now();
        await lease.release();
        await (await waiting).release();
        expect(performance.now() - releasedAt).toBeLessThan(NOT_WOKEN_MS);
      }
    };
    // A process keeps its bell from the first release on that another one waited for.
    await passOn(() => lab.waiting(key));
    const isHeard = () =>
      until(async () => (await parked()).length > 0, { what: 'a waiter is parked at a bell' });
    await passOn(isHeard, async () => {
      const bells = await lab.query(
        "SELECT ID AS id FROM information_schema.PROCESSLIST WHERE USER = 'app' AND (STATE = 'User lock' OR INFO LIKE '%GET_LOCK%')",
      );
      for (const { id } of bells) await lab.query(`KILL CONNECTION ${id}`).catch(() => undefined);
      expect(bells.length).toBeGreaterThan(0);
    });
    await passOn(isHeard);
    await lab.nothingLeft(one, two);
  });
});
