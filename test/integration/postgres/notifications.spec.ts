import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { PostgresStore, PostgresStoreOptions } from '../../../lib/stores/postgres/postgres.store.js';
import { until } from '../../support/async.js';
import { NOT_WOKEN_MS } from '../../support/stores/hot-key.js';
import { newKey, PostgresLab, rowName } from '../../support/postgres/postgres-lab.js';
import { claimFor } from '../../support/stores/harness.js';

const WAIT = { waitMs: 20_000 };
const KINDS = ['exclusive', 'permit'] as const;

/** Address of another database of the server. */
const elsewhere = (): string => lab.server.uri.replace(/app$/, 'elsewhere');

let lab: PostgresLab;
beforeAll(async () => {
  lab = await PostgresLab.start();
  await lab.server.admin('CREATE DATABASE elsewhere OWNER app');
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

/** Resolves when the connection of a waiter listens, and has been found to hear. */
const heard = async (count = 1): Promise<readonly number[]> => {
  await until(async () => (await lab.backends('LISTEN', 'idle')).length === count, {
    what: 'a process listens',
  });
  return lab.backends('LISTEN', 'idle');
};

/** Stores have no poller, so only a notification can wake their watches. */
const pairOf = (kind: (typeof KINDS)[number], options: PostgresStoreOptions = {}) => {
  const [holder, waiter] = [lab.store(), lab.store(options)];
  const finalKey = `lock:${newKey()}`;
  const claim = (waits: boolean, of = 1) =>
    ({ ...claimFor(finalKey, { waits }), ...(kind === 'permit' && { kind, tokens: 0, of }) }) as never;
  /** Acquires with a new owner. */
  const acquire = async (store: PostgresStore, { waits = false, of = 1 } = {}) => {
    const own = claim(waits, of);
    const { status } = await store.kinds[kind].acquire(own);
    return { status, release: () => store.kinds[kind].release(own) };
  };
  const watch = () => {
    const seen = { notified: 0 };
    const listener = { notified: () => void (seen.notified += 1), failed: () => undefined };
    return Object.assign(seen, { watch: waiter.kinds[kind].watch(claim(true), listener) });
  };
  return { finalKey, holder, waiter, acquire, watch };
};

describe('notifications', () => {
  it.each(KINDS)('wake a waiter of the kind %s; no process listens before it waits', async (kind) => {
    const { holder, waiter, acquire, watch } = pairOf(kind);
    const held = await acquire(holder);
    expect((await acquire(waiter)).status).toBe('taken');
    expect(await lab.backends('LISTEN')).toEqual([]);
    const seen = watch();
    await acquire(waiter, { waits: true });
    await until(() => seen.watch.live, { what: 'the watch is live' });
    expect(seen.notified).toBe(0);
    await held.release();
    await until(() => seen.notified > 0, { what: 'the waiter is notified' });
    seen.watch.close();
  });

  it('are sent only for a key that other processes wait for', async () => {
    const listener = await lab.server.adminConnection('app');
    const payloads: (string | undefined)[] = [];
    listener.on('notification', ({ payload }) => payloads.push(payload));
    await listener.query('LISTEN nest_lock');
    const { locks } = lab.open();
    await locks.withLock(newKey(), () => undefined);
    await locks.permits(newKey(), { permits: 1 }).withPermit(() => undefined);
    const lease = await locks.acquire(newKey('wanted'));
    const waiting = lab.open().locks.acquire(lease.key, WAIT);
    await lab.waiting(lease.key);
    const [row] = await lab.query(`SELECT queue FROM nest_lock WHERE name = '${rowName(lease.key)}'`);
    await listener.query(`LISTEN "nest_lock_${String(row!['queue']).slice(1)}"`);
    await lease.release();
    await (await waiting).release();
    await until(() => payloads.includes(`free ${rowName(lease.key)}`));
    expect(payloads.filter((payload) => payload?.includes('lock:'))).toHaveLength(1);
    await listener.end();
  });

  it('reach processes of version 0.2.0, which have one channel, and come from them', async () => {
    const listener = await lab.server.adminConnection('app');
    const payloads: (string | undefined)[] = [];
    listener.on('notification', ({ payload }) => payloads.push(payload));
    await listener.query('LISTEN nest_lock');
    const { finalKey, holder, acquire, watch } = pairOf('exclusive');
    const held = await acquire(holder);
    await lab.query(`UPDATE nest_lock SET queue = ',0123456789ab' WHERE name = '${finalKey}'`);
    await held.release();
    await until(() => payloads.includes(finalKey), { what: 'the old process is notified' });
    const seen = watch();
    await until(() => seen.watch.live, { what: 'the watch is live' });
    await lab.query(`SELECT pg_notify('nest_lock', '${finalKey}')`);
    await until(() => seen.notified > 0, { what: 'the new process is notified' });
    seen.watch.close();
    await listener.end();
  });

  it('that may be missed, because their connection is lost, wake the waiters; later they come back', async () => {
    const { holder, waiter, acquire, watch } = pairOf('exclusive');
    const held = await acquire(holder);
    const seen = watch();
    await acquire(waiter, { waits: true });
    await until(() => seen.watch.live, { what: 'the watch is live' });
    for (const pid of await heard()) await lab.query(`SELECT pg_terminate_backend(${pid}, 1000)`);
    await until(() => !seen.watch.live && seen.notified > 0, { what: 'the waiter polls from now on' });
    await until(() => seen.watch.live, { what: 'the watch is live again' });
    const before = seen.notified;
    await held.release();
    await until(() => seen.notified > before, { what: 'the waiter is notified' });
    seen.watch.close();
  });

  it('of permits wake each of several waiters of a process', async () => {
    const { holder, waiter, acquire, watch } = pairOf('permit');
    const held = [await acquire(holder, { of: 2 }), await acquire(holder, { of: 2 })];
    const watches = [watch(), watch()];
    expect((await acquire(waiter, { waits: true, of: 2 })).status).toBe('taken');
    await until(() => watches.every((seen) => seen.watch.live), { what: 'the watches are live' });
    await held[0]!.release();
    await until(() => watches.every((seen) => seen.notified > 0), { what: 'both are notified' });
    expect((await acquire(waiter, { waits: true, of: 2 })).status).toBe('granted');
    const before = watches[1]!.notified;
    await held[1]!.release();
    await until(() => watches[1]!.notified > before, { what: 'the other one is notified' });
    for (const seen of watches) seen.watch.close();
  });

  it('whose connection is refused are warned of with the reason', async () => {
    const waiter = lab.open({}, { listenUrl: lab.server.uri.replace('secret', 'wrong') });
    const { key } = await lab.open().locks.acquire(newKey());
    const waiting = waiter.locks.acquire(key, WAIT).catch(() => undefined);
    await until(() => waiter.log.length > 0, { what: 'a warning' });
    expect(waiter.log).toEqual([expect.stringMatching(/cannot listen: .*password authentication failed/)]);
    await waiter.manager.close();
    await waiting;
  });

  it('that a store has not heard yet when it closes are no reason for a warning', async () => {
    const waiter = lab.open({}, { listenUrl: elsewhere() });
    const { key } = await lab.open().locks.acquire(newKey());
    const waiting = waiter.locks.acquire(key, WAIT).catch(() => undefined);
    await heard();
    await waiter.manager.close();
    await waiting;
    await until(async () => (await lab.backends('LISTEN')).length === 0, { what: 'none listens' });
    expect(waiter.log.filter((line) => /notifications|listen/.test(line))).toEqual([]);
  });

  it('that are not heard are warned of once, and waiters poll', async () => {
    const listenUrl = elsewhere();
    const waiter = lab.open({}, { listenUrl, commandTimeoutMs: 1_500 });
    await waiter.manager.open();
    const warned = () => until(() => waiter.log.length > 0, { what: 'a warning' });
    const holder = lab.open();
    const lease = await holder.locks.acquire(newKey());
    const waiting = waiter.locks.acquire(lease.key, WAIT);
    await warned();
    const releasedAt = performance.now();
    await lease.release();
    await waiting;
    expect(performance.now() - releasedAt).toBeLessThan(NOT_WOKEN_MS);
    expect(waiter.log).toEqual([expect.stringMatching(/hears no notifications.*listenUrl/)]);
  });

  it('leave no connection behind when the store closes', async () => {
    const waiter = lab.open();
    const { key } = await lab.open().locks.acquire(newKey());
    const waiting = waiter.locks.acquire(key, WAIT).catch(() => undefined);
    await heard();
    await waiter.manager.close();
    await waiting;
    await until(async () => (await lab.backends('LISTEN')).length === 0, { what: 'none listens' });
  });
});
