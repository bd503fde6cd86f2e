import { LockStoreError } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { documentedLogin, DOCUMENTED_RULES, FAIR_RULES } from '../support/redis/documented-user.js';
import { useLab } from '../support/redis/lab.js';

/*
 * What the smallest Redis user needs beside its rules to use fair locks, as the documents have it.
 */
const WITH_FAIR_LOCKS = [...DOCUMENTED_RULES, ...FAIR_RULES];

/** With braces and without: what belongs to them is named in different ways. */
const NAMES = { order: '{lock:order}', 'stock:{7}': 'lock:stock:{7}' };

const fair = { mode: 'fair' } as const;
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

/** Takes a key, has two wait for it of which one gives up, wakes the other, looks, and forces it open. */
const useFairLocks = async (rules: readonly string[]): Promise<void> => {
  const [one, two] = await openFor(rules);
  for (const [key, name] of Object.entries(NAMES)) {
    const lease = await one.locks.acquire(key, fair);
    const calledOff = new AbortController();
    const first = two.locks.acquire(key, { ...fair, waitMs: 20_000, signal: calledOff.signal });
    const length = (): Promise<number> => lab.admin.llen(`redisson_lock_queue:${name}`);
    const untilQueued = async (count: number): Promise<void> =>
      void (await until(async () => (await length()) === count));
    await within(10_000, Promise.race([untilQueued(1), first]));
    const waiting = two.locks.acquire(key, { ...fair, waitMs: 20_000 });
    await within(10_000, Promise.race([untilQueued(2), waiting]));
    expect(await one.locks.inspect(key)).toMatchObject({
      kind: 'fair',
      waiting: [{}, {}].map(() => expect.any(String)),
    });
    calledOff.abort();
    await expect(first).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await within(10_000, Promise.race([untilQueued(1), waiting]));
    await lease.release();
    const next = await within(10_000, waiting);
    expect(await one.locks.forceUnlock(key)).toBe(true);
    expect(await next.verify()).toBe(false);
  }
};

describe('the smallest user of Redis that uses fair locks, too,', () => {
  it('needs no more than the documents say', async () => {
    await useFairLocks(WITH_FAIR_LOCKS);
    expect(await refused()).toEqual([]);
  });

  it.each(FAIR_RULES)('needs %s', async (rule) => {
    await useFairLocks(WITH_FAIR_LOCKS.filter((candidate) => candidate !== rule)).catch(() => undefined);
    const wanted = rule.slice(1).replace(/\*.*$/, '');
    await until(async () => (await refused()).length > 0);
    expect((await refused()).filter((name) => !name.startsWith(wanted))).toEqual([]);
  });

  it('without the rules gets an error and never a lock that is taken, and no hold stays', async () => {
    const [one, two] = await openFor(DOCUMENTED_RULES);
    await expect(one.locks.acquire('order', fair)).rejects.toBeInstanceOf(LockStoreError);
    expect(await lab.hold('order')).toBeNull();
    await two.locks.withLock('order', async () =>
      expect(await one.locks.inspect('order')).toMatchObject({ kind: 'exclusive' }),
    );
  });
});
