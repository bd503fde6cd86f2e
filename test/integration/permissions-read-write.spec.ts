import { LockStoreError } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { documentedLogin, DOCUMENTED_RULES, READ_WRITE_RULES } from '../support/redis/documented-user.js';
import { useLab } from '../support/redis/lab.js';

/*
 * What the smallest Redis user needs beside its rules to use read-write locks, as the documents have it.
 */
const WITH_READ_WRITE = [...DOCUMENTED_RULES, ...READ_WRITE_RULES];

/** With braces and without: their channels are named in different ways. */
const CHANNELS = {
  order: 'redisson_rwlock:{lock:order}',
  'stock:{7}': 'redisson_rwlock:lock:stock:{7}',
};

/** Every command in the scripts of read-write locks that changes something or announces it. */
const COMMANDS = ['+del', '+hdel', '+hset', '+pexpire', '+publish', '+set'];

const lab = useLab();

/** Two processes of a user with these rules, on a server that has refused nothing yet. */
const openFor = async (rules: readonly string[]) => {
  await lab.admin.call('ACL', 'SETUSER', documentedLogin.username, 'reset', ...rules);
  await lab.admin.call('ACL', 'LOG', 'RESET');
  await lab.admin.script('FLUSH');
  const user = { ...lab.server.clientOptions(), ...documentedLogin };
  return [lab.open({}, user), lab.open({}, user)] as const;
};

/** The names of keys, channels and commands that the server has refused. */
const refused = async (): Promise<string[]> => {
  const entries = (await lab.admin.call('ACL', 'LOG')) as unknown[][];
  return entries.map((entry) => String(entry[7]));
};

/** Takes each key to read, waits for it to write in another process, is woken, downgrades, and looks. */
const useReadWrite = async (rules: readonly string[]): Promise<void> => {
  const [one, two] = await openFor(rules);
  for (const [key, channel] of Object.entries(CHANNELS)) {
    const lease = await one.locks.acquire(key, { mode: 'read' });
    const concurrent = await two.locks.acquire(key, { mode: 'read' });
    expect((await two.locks.inspect(key))?.kind).toBe('read');
    const waiting = two.locks.acquire(key, { mode: 'write', waitMs: 20_000 });
    const woken = until(async () => (await lab.channels()).includes(channel))
      .then(() => Promise.all([lease.release(), concurrent.release()]))
      .then(() => waiting);
    const next = await within(10_000, Promise.race([woken, waiting]));
    await next.extend(60_000);
    await next.downgrade();
    expect(await one.locks.forceUnlock(key)).toBe(true);
    expect(await next.verify()).toBe(false);
  }
};

describe('the smallest user of Redis that uses read-write locks, too,', () => {
  it('needs no more than the documents say', async () => {
    await useReadWrite(WITH_READ_WRITE);
    expect(await refused()).toEqual([]);
  });

  it.each(READ_WRITE_RULES)('needs %s', async (rule) => {
    const fewer = WITH_READ_WRITE.filter((candidate) => candidate !== rule);
    await expect(useReadWrite(fewer)).rejects.toBeInstanceOf(LockStoreError);
    expect((await refused()).length).toBeGreaterThan(0);
  });

  it.each(COMMANDS)('leaves no hold without an end when it may not use %s any more', async (rule) => {
    const [one, two] = await openFor(WITH_READ_WRITE);
    const reader = await one.locks.acquire('mail', { mode: 'read' });
    const kept = await two.locks.acquire('mail', { mode: 'read', holdAtLeastMs: 30_000 });
    const writer = await one.locks.acquire('only', { mode: 'write' });
    const lesser = await one.locks.acquire('less', { mode: 'write' });
    await one.locks.acquire('forced', { mode: 'write' });
    await lab.admin.call('ACL', 'SETUSER', documentedLogin.username, rule.replace('+', '-'));
    const outcomes = await Promise.allSettled([
      two.locks.tryAcquire('mail', { mode: 'read' }),
      reader.extend(60_000),
      lesser.downgrade(),
      reader.release(),
      kept.release(),
      writer.release(),
      one.locks.forceUnlock('forced'),
      two.locks.tryAcquire('new', { mode: 'read' }),
      two.locks.tryAcquire('newer', { mode: 'write' }),
    ]);
    expect(outcomes.map(({ status }) => status)).toContain('rejected');
    for (const name of await lab.admin.keys('*lock:*')) {
      if (name.startsWith('nest_redis_lock:fence:')) continue;
      expect(await lab.admin.pttl(name), name).not.toBe(-1);
    }
  });

  it('leaves the others in line when it may not use +pexpire any more', async () => {
    const [one, two] = await openFor(WITH_READ_WRITE);
    const holder = await one.locks.acquire('mail', { mode: 'write' });
    const waiting = lab.open().locks.acquire('mail', { mode: 'read', waitMs: 60_000 });
    const queueKey = 'nest_redis_lock:rw_queue:{lock:mail}';
    const queued = await until(async () => {
      const { last, ...entries } = await lab.admin.hgetall(queueKey);
      return last !== undefined && Object.keys(entries);
    });
    await lab.admin.call('ACL', 'SETUSER', documentedLogin.username, '-pexpire');
    waiting.catch(() => undefined);
    await expect(two.locks.acquire('mail', { mode: 'read' })).rejects.toBeInstanceOf(LockStoreError);
    expect(await lab.admin.hkeys(queueKey)).toEqual(expect.arrayContaining(['last', ...queued]));
    expect(await lab.admin.hlen(queueKey)).toBe(1 + queued.length);
    await lab.admin.call('ACL', 'SETUSER', documentedLogin.username, '+pexpire');
    await holder.release();
    await (await waiting).release();
  });

  it('still uses every other lock without these rules, and hears that read-write locks are refused', async () => {
    const [one, two] = await openFor(DOCUMENTED_RULES);
    await expect(one.locks.acquire('crm', { mode: 'read' })).rejects.toBeInstanceOf(LockStoreError);
    const lease = await one.locks.acquire('order');
    expect(await two.locks.inspect('order')).toMatchObject({ kind: 'exclusive' });
    expect(await two.locks.forceUnlock('order')).toBe(true);
    expect(await lease.verify()).toBe(false);
    // A hold of another kind is reported as taken, with its kind, and is not released by force.
    await lab.admin.multi().hset('lock:crm', 'mode', 'read', 'java:1', 1).pexpire('lock:crm', 60_000).exec();
    await expect(one.locks.acquire('crm', { waitMs: 0 })).rejects.toMatchObject({ heldAs: 'read' });
    expect(await two.locks.inspect('crm')).toMatchObject({ kind: 'read', holders: [{ owner: 'java:1' }] });
    await expect(two.locks.forceUnlock('crm')).rejects.toBeInstanceOf(LockStoreError);
    expect(await lab.admin.exists('lock:crm')).toBe(1);
  });
});
