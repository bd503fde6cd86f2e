import { LockStoreError } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { documentedLogin, DOCUMENTED_RULES, PERMIT_RULES } from '../support/redis/documented-user.js';
import { useLab } from '../support/redis/lab.js';

/*
 * What the smallest Redis user needs beside its rules to use permits, as the documents have it.
 */
const WITH_PERMITS = [...DOCUMENTED_RULES, ...PERMIT_RULES];

/** With braces and without: their channels are named in different ways. */
const CHANNELS = {
  order: 'redisson_sc:{lock:order}',
  'stock:{7}': 'redisson_sc:lock:stock:{7}',
};

/** Every command in the scripts of permits: some of them other scripts need as well. */
const COMMANDS = [
  ...['+del', '+get', '+pttl', '+publish', '+set', '+time'],
  ...PERMIT_RULES.filter((rule) => rule.startsWith('+')),
];

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

/** Takes the only permit of each key, waits for it in another process, is woken, and looks. */
const usePermits = async (rules: readonly string[]): Promise<void> => {
  const [one, two] = await openFor(rules);
  for (const [key, channel] of Object.entries(CHANNELS)) {
    const lease = await one.locks.permits(key, { permits: 1 }).acquire();
    expect((await two.locks.inspect(key))?.kind).toBe('permit');
    const waiting = two.locks.permits(key, { permits: 1 }).acquire({ waitMs: 20_000 });
    const woken = until(async () => (await lab.channels()).includes(channel))
      .then(() => lease.release())
      .then(() => waiting);
    const next = await within(10_000, Promise.race([woken, waiting]));
    await next.extend(60_000);
    expect(await one.locks.forceUnlock(key)).toBe(true);
    expect(await next.verify()).toBe(false);
  }
  // A counter that Java has made has no time to live, and neither has its set.
  await lab.admin.set('lock:java', 1);
  await using _java = await one.locks.permits('java').acquire();
  // Beside one that is held there is one whose time is over: it is cleared away.
  await using _held = await one.locks.permits('mail', { permits: 2 }).acquire();
  const ended = await one.locks.permits('mail', { permits: 2 }).acquire({ leaseMs: 20 });
  await until(async () => (await lab.admin.zcount('{lock:mail}:timeout', '-inf', Date.now())) === 1);
  await two.locks.permits('mail', { permits: 2 }).withPermit(() => undefined);
  expect(await ended.release()).toBe('lost');
};

describe('the smallest user of Redis that uses permits, too,', () => {
  it('needs no more than the documents say', async () => {
    await usePermits(WITH_PERMITS);
    expect(await refused()).toEqual([]);
  });

  it.each(PERMIT_RULES)('needs %s', async (rule) => {
    const fewer = WITH_PERMITS.filter((candidate) => candidate !== rule);
    await expect(usePermits(fewer)).rejects.toBeInstanceOf(LockStoreError);
    const names = await refused();
    expect(names.length).toBeGreaterThan(0);
    const wanted = rule.slice(1).replace(/\*.*$/, '');
    expect(names.filter((name) => !name.startsWith(wanted))).toEqual([]);
  });

  it.each(COMMANDS)(
    'loses no permit and gets none for nothing when it may not use %s any more',
    async (rule) => {
      const [one, two] = await openFor(WITH_PERMITS);
      const held = await one.locks.permits('mail', { permits: 3 }).acquire();
      const kept = await one.locks.permits('mail').acquire({ holdAtLeastMs: 30_000 });
      await lab.admin.set('lock:forced', 3);
      await one.locks.permits('forced').acquire();
      const only = await one.locks.permits('only', { permits: 3 }).acquire();
      await one.locks.permits('mail').acquire({ leaseMs: 20 });
      await until(async () => (await lab.admin.zcount('{lock:mail}:timeout', '-inf', Date.now())) === 1);
      await lab.admin.call('ACL', 'SETUSER', documentedLogin.username, rule.replace('+', '-'));
      const outcomes = await Promise.allSettled([
        two.locks.permits('mail').tryAcquire(),
        held.extend(60_000),
        held.release(),
        kept.release(),
        only.release(),
        one.locks.forceUnlock('forced'),
        two.locks.permits('new', { permits: 3 }).tryAcquire(),
      ]);
      expect(outcomes.map(({ status }) => status)).toContain('rejected');
      for (const name of ['lock:mail', 'lock:only', 'lock:forced', 'lock:new']) {
        const set = `{${name}}:timeout`;
        const free = await lab.admin.get(name);
        if (free !== null || name !== 'lock:new') {
          expect(Number(free) + (await lab.admin.zcard(set)), name).toBe(3);
        }
        if (name !== 'lock:forced') {
          expect([await lab.admin.pttl(name), await lab.admin.pttl(set)], name).not.toContain(-1);
        }
      }
    },
  );

  it('still uses every lock without these rules, and hears that permits are refused', async () => {
    const [one, two] = await openFor(DOCUMENTED_RULES);
    await expect(one.locks.permits('crm', { permits: 1 }).acquire()).rejects.toBeInstanceOf(LockStoreError);
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
