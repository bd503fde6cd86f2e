import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import type { LockService } from '../../lib/nest/service/lock.service.js';
import { deferred, until, within } from '../support/async.js';
import { holdName, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';

const lab = useLab();

/** Takes a lock of every kind: from then on the process knows how to end each. */
const useEveryKind = async (locks: LockService): Promise<void> => {
  for (const options of [{ mode: 'fair' }, { mode: 'write' }] as const) {
    await locks.withLock(newKey(), options, () => undefined);
  }
  await locks.permits(newKey(), { permits: 1 }).withPermit(() => undefined);
};

/** Makes a connection send one more script, and the others when `later` resolves. */
const sendOneScriptBefore = (client: Redis, later: Promise<void>): void => {
  const send = client.sendCommand.bind(client);
  let scripts = 0;
  client.sendCommand = (command, stream) => {
    if (command.name !== 'evalsha' || (scripts += 1) === 1) return send(command, stream);
    void later.then(() => send(command, stream));
    return command.promise;
  };
};

describe('forceUnlock', () => {
  it('ends a hold of another process and wakes a waiter; the holder notices at its next renewal', async () => {
    const [holder, other, waiter] = [lab.open(SHORT_WATCHDOG), lab.open(), lab.open()];
    const lease = await holder.locks.acquire(newKey());
    const waiting = waiter.locks.acquire(lease.key, { waitMs: 20_000 });
    await lab.waiting(lease.key);
    expect(await other.locks.forceUnlock(lease.key)).toBe(true);
    await using next = await within(5_000, waiting);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await until(() => lease.signal.aborted);
    expect(holder.events('lost')).toMatchObject([{ key: lease.key, reason: 'refused' }]);
    expect(await lease.release()).toBe('lost');
    expect(await next.release()).toBe('released');
  });

  it('is looked into at once by a process that hears of it while it holds the key', async () => {
    const [first, holder, other] = [lab.open(), lab.open(), lab.open()];
    const key = newKey();
    const before = await first.locks.acquire(key);
    const waiting = holder.locks.acquire(key, { waitMs: 20_000 });
    await lab.waiting(key);
    await before.release();
    const lease = await within(5_000, waiting);
    const behind = holder.locks.acquire(key, { waitMs: 20_000, holdAtLeastMs: 1 });
    expect(await other.locks.forceUnlock(key)).toBe(true);
    // The next renewal is ten seconds away.
    await within(
      5_000,
      until(() => lease.signal.aborted),
    );
    expect(holder.events('lost')).toMatchObject([{ key, reason: 'refused' }]);
    await using next = await within(5_000, behind);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(await lease.release()).toBe('lost');
  });

  it('ends a hold of this process at once, with the reason', async () => {
    const { locks, events } = lab.open();
    const lease = await locks.acquire(newKey());
    const signal = lease.signal;
    expect(await locks.forceUnlock(lease.key)).toBe(true);
    expect(signal.aborted).toBe(true);
    expect(events('lost')).toMatchObject([{ key: lease.key, reason: 'force-unlocked' }]);
    // Its place is free for the next caller, before it has let go of the lease.
    await using _next = await within(5_000, locks.acquire(lease.key));
    expect(await lease.release()).toBe('lost');
    expect(await lab.hold(lease.key)).not.toBeNull();
  });

  it('ends one hold, and not that of the waiter that it has woken', async () => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const clients: Redis[] = [];
    const { host, port } = lab.server;
    const other = lab.open({}, (_role, settings) => {
      const client = new Redis({ ...settings, host, port });
      clients.push(client);
      return client;
    });
    await useEveryKind(other.locks);
    const lease = await holder.locks.acquire(newKey(), { mode: 'fair' });
    const waiting = waiter.locks.acquire(lease.key, { mode: 'fair', waitMs: 20_000 });
    await until(async () => (await waiter.locks.inspect(lease.key))?.waiting.length === 1);
    const woken = deferred();
    for (const client of clients) sendOneScriptBefore(client, woken.promise);
    const forced = other.locks.forceUnlock(lease.key);
    const next = await within(5_000, waiting);
    woken.resolve();
    expect(await forced).toBe(true);
    expect(await next.verify()).toBe(true);
    expect(await next.release()).toBe('released');
    expect(await lease.release()).toBe('lost');
  });

  it.each([
    ['an exclusive lock', (locks: LockService) => locks.acquire(newKey())],
    ['a fair lock', (locks: LockService) => locks.acquire(newKey(), { mode: 'fair' })],
    ['a lock to read', (locks: LockService) => locks.acquire(newKey(), { mode: 'read' })],
    ['a lock to write', (locks: LockService) => locks.acquire(newKey(), { mode: 'write' })],
    ['a permit', (locks: LockService) => locks.permits(newKey(), { permits: 2 }).acquire()],
  ])('ends %s, also in a process that knows every kind', async (_kind, take) => {
    const [holder, other] = [lab.open(), lab.open()];
    await useEveryKind(other.locks);
    const lease = await take(holder.locks);
    expect(await other.locks.forceUnlock(lease.key)).toBe(true);
    expect(await lease.release()).toBe('lost');
    expect(await other.locks.forceUnlock(lease.key)).toBe(false);
  });

  it('refuses what is no lock, and leaves it, also in a process that knows every kind', async () => {
    const { locks } = lab.open();
    await useEveryKind(locks);
    const key = newKey();
    await lab.admin.rpush(holdName(key), 'a list');
    await expect(locks.forceUnlock(key)).rejects.toMatchObject({
      code: 'LOCK_STORE_FAILED',
      outcome: 'not-executed',
      message: expect.stringContaining('WRONGTYPE') as string,
    });
    expect(await lab.admin.lrange(holdName(key), 0, -1)).toEqual(['a list']);
  });

  it('of a free lock is false', async () => {
    expect(await lab.open().locks.forceUnlock(newKey())).toBe(false);
  });
});
