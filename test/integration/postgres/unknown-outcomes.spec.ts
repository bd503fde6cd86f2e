import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { ACQUIRE, newKey, PostgresLab } from '../../support/postgres/postgres-lab.js';

const ROUNDS = 30;

let lab: PostgresLab;
beforeAll(async () => {
  lab = await PostgresLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

/** A service behind a proxy with one lane. */
const open = async (pooled = false) => {
  const proxy = await lab.proxy();
  const store = { connectionString: lab.uriThrough(proxy), lanes: 1, pooled };
  const opened = lab.open({ watchdogMs: 60_000 }, store);
  return { proxy, opened, locks: opened.locks };
};

describe('an acquire whose connection is cut', () => {
  it('in flight, at any byte and with many others beside it, leaves no hold', async () => {
    const { proxy, opened, locks } = await open();
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
      await lab.nothingLeft(opened);
    }
    expect(unknown).toBeGreaterThan(ROUNDS / 3);
  });

  it('with pooled: true, is undone only when its lease is over', async () => {
    const { proxy, locks } = await open(true);
    const key = newKey();
    await locks.withLock(key, () => undefined);
    const foreign = await lab.foreignTransaction(key);
    const startedAt = performance.now();
    const acquiring = locks.tryAcquire(key, { leaseMs: 1_200 }).catch((error: unknown) => error);
    await until(async () => (await lab.acquires()).length > 0);
    for (const connection of proxy.find(ACQUIRE)) connection.cut();
    expect(await acquiring).toMatchObject({ code: 'LOCK_STORE_FAILED', outcome: 'unknown' });
    await foreign[Symbol.asyncDispose]();
    await until(() => lab.isHeld(key), { what: 'the acquire was executed nevertheless' });
    expect(locks.usage.undoing).toBe(1);
    await until(() => locks.usage.undoing === 0, { what: 'the lease is over' });
    expect(performance.now() - startedAt).toBeGreaterThan(1_199);
    // In the server the lease began when the row was free.
    await until(async () => !(await lab.isHeld(key)), { timeoutMs: 1_200, what: 'its lease is over there' });
  });
});

describe('an acquire whose statement an operator cancels', () => {
  it('was certainly not executed, so nothing has to be undone', async () => {
    const { locks } = lab.open({}, { lanes: 1 });
    const key = newKey();
    await locks.withLock(key, () => undefined);
    await using _foreign = await lab.foreignTransaction(key);
    const acquiring = locks.tryAcquire(key).catch((error: unknown) => error);
    const pid = await until(async () => (await lab.acquires())[0]);
    await lab.query(`SELECT pg_cancel_backend(${pid})`);
    expect(await acquiring).toMatchObject({ outcome: 'not-executed' });
    expect(locks.usage.undoing).toBe(0);
  });
});
