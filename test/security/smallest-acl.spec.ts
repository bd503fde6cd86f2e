import { LockStoreError } from 'nest-redis-lock';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { aclRules, permitRules } from '../support/acl-user.js';
import { Lab } from '../integration/scenarios/lab.js';

/*
 * The commands of the documented user are taken away one by one in test/docs/permissions.spec.ts, and what happens
 * without each is in test/integration/scenarios/acl.spec.ts. Here: the keys and the channels.
 */
const PASSWORD = 'secret';
const RULES = aclRules(PASSWORD);
const WITH_PERMITS = [...RULES, ...permitRules()];
const isPattern = (rule: string): boolean => /^[~&%]/.test(rule);
const PATTERNS = RULES.filter(isPattern);

let lab: Lab;
beforeAll(async () => {
  lab = await Lab.start();
});
afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

/** Two processes of a user with these rules. */
const openFor = async (rules: readonly string[]) => {
  await lab.admin.call('ACL', 'SETUSER', 'locks', 'reset', 'on', ...rules);
  await lab.admin.call('ACL', 'LOG', 'RESET');
  const user = { ...lab.server.clientOptions(), username: 'locks', password: PASSWORD };
  return [lab.open({}, user), lab.open({}, user)] as const;
};

/** Keys and channels the server has kept from the user. */
const refused = async (): Promise<string[]> => {
  const entries = (await lab.admin.call('ACL', 'LOG')) as unknown[][];
  return entries.map((entry) => String(entry[entry.indexOf('object') + 1]));
};

/** With braces and without: their channels are named in different ways. */
const KEYS = {
  order: 'redisson_lock__channel:{lock:order}',
  'stock:{7}': 'redisson_lock__channel:lock:stock:{7}',
};

/** Takes each lock, waits for it in another process, and is woken. */
const useThem = async (rules: readonly string[]): Promise<void> => {
  const [one, two] = await openFor(rules);
  for (const [key, channel] of Object.entries(KEYS)) {
    const lease = await one.locks.acquire(key);
    const waiting = two.locks.acquire(key, { waitMs: 20_000 });
    const woken = until(async () => ((await lab.admin.pubsub('CHANNELS')) as string[]).includes(channel))
      .then(() => lease.release())
      .then(() => waiting);
    // Who may not listen fails without having waited.
    await (await within(10_000, Promise.race([woken, waiting]))).release();
  }
};

describe('of the ACL user of the documentation', () => {
  it('the names are enough', async () => {
    await useThem(RULES);
    expect(await refused()).toEqual([]);
  });

  it.each(PATTERNS)('%s is needed', async (pattern) => {
    await expect(useThem(RULES.filter((rule) => rule !== pattern))).rejects.toBeInstanceOf(LockStoreError);
    const prefix = pattern.slice(1).replace(/\*$/, '');
    const names = await refused();
    expect(names.length).toBeGreaterThan(0);
    expect(names.filter((name) => !name.startsWith(prefix))).toEqual([]);
  });

  it.each([
    ['get', ['lock', 'locks:a', 'other:lock:a', 'nest_redis_lock_fence', 'order', '*']],
    ['subscribe', ['redisson_lock__channel', 'redisson_rwlock:{lock:a}', '__keyspace@0__:lock:a', 'news']],
    ['publish', ['redisson_lock__channel:{other:a}', 'redisson_lock__channel:other:{a}']],
  ])('no name covers more than the locks of this prefix (%s)', async (command, names) => {
    await openFor(RULES);
    for (const name of names) {
      const args = command === 'publish' ? [name, '0'] : [name];
      expect(await lab.admin.call('ACL', 'DRYRUN', 'locks', command, ...args), name).not.toBe('OK');
    }
  });
});

/** The same names for permits. */
const PERMIT_KEYS = {
  order: 'redisson_sc:{lock:order}',
  'stock:{7}': 'redisson_sc:lock:stock:{7}',
};

/** Takes the only permit of each key, waits for it in another process, is woken, and looks. */
const usePermits = async (rules: readonly string[]): Promise<void> => {
  const [one, two] = await openFor(rules);
  for (const [key, channel] of Object.entries(PERMIT_KEYS)) {
    const lease = await one.locks.acquirePermit(key, { permits: 1 });
    expect((await two.locks.inspect(key))?.kind).toBe('permit');
    const waiting = two.locks.acquirePermit(key, { permits: 1, waitMs: 20_000 });
    const woken = until(async () => ((await lab.admin.pubsub('CHANNELS')) as string[]).includes(channel))
      .then(() => lease.release())
      .then(() => waiting);
    const next = await within(10_000, Promise.race([woken, waiting]));
    await next.extend(60_000);
    expect(await one.locks.forceUnlock(key)).toBe(true);
    expect(await next.verify()).toBe(false);
  }
  // Beside one that is held there is one whose time is over: it is cleared away.
  await using _held = await one.locks.acquirePermit('mail', { permits: 2 });
  const ended = await one.locks.acquirePermit('mail', { permits: 2, leaseMs: 20 });
  await until(async () => (await lab.admin.zcount('{lock:mail}:timeout', '-inf', Date.now())) === 1);
  await two.locks.withPermit('mail', { permits: 2 }, () => undefined);
  expect(await ended.release()).toBe('lost');
};

describe('of the ACL user that may use permits, too,', () => {
  it('the names and the commands are enough', async () => {
    await usePermits(WITH_PERMITS);
    expect(await refused()).toEqual([]);
    // A counter keeps its name for as long as the longest lease could have been.
    await lab.admin.flushall();
    await useThem(WITH_PERMITS);
    expect(await refused()).toEqual([]);
  });

  it.each(permitRules())('%s is needed', async (rule) => {
    await expect(usePermits(WITH_PERMITS.filter((candidate) => candidate !== rule))).rejects.toBeInstanceOf(
      LockStoreError,
    );
    const names = await refused();
    expect(names.length).toBeGreaterThan(0);
    const wanted = rule.slice(1).replace(/\*.*$/, '');
    expect(names.filter((name) => !name.startsWith(wanted))).toEqual([]);
  });

  it('who may not take permits gets an error that says so, and still uses every lock', async () => {
    const [one, two] = await openFor(RULES);
    await expect(one.locks.acquirePermit('crm', { permits: 1 })).rejects.toBeInstanceOf(LockStoreError);
    const lease = await one.locks.acquire('order');
    expect(await two.locks.inspect('order')).toMatchObject({
      kind: 'exclusive',
      holders: [{ owner: lease.owner }],
    });
    expect(await two.locks.inspect('free')).toBeNull();
    expect(await two.locks.forceUnlock('free')).toBe(false);
    expect(await two.locks.forceUnlock('order')).toBe(true);
    expect(await lease.verify()).toBe(false);
    expect(await lab.admin.keys('lock:crm*')).toEqual([]);
  });
});
