import { LockStoreError } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { documentedLogin, DOCUMENTED_RULES, OBJECT_RULES } from '../support/redis/documented-user.js';
import { useLab } from '../support/redis/lab.js';

/*
 * What the smallest Redis user needs beside its rules to use semaphores and latches, as the documents have it.
 */
const WITH_OBJECTS = [...DOCUMENTED_RULES, ...OBJECT_RULES];

/** With braces and without: the channels of semaphores are named in different ways. */
const KEYS = ['pool', 'pool:{7}'];

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

/** Waits until a waiter is subscribed, does the work, and awaits the waiter. */
const woken = async (channel: string, waiting: Promise<void>, work: () => Promise<void>): Promise<void> => {
  const done = until(async () => (await lab.channels()).some((name) => name.startsWith(channel))).then(work);
  await within(10_000, Promise.race([done.then(() => waiting), waiting]));
  await done;
};

/** Uses all there is of both, one process waiting for the other. */
const useObjects = async (rules: readonly string[]): Promise<void> => {
  const [one, two] = await openFor(rules);
  for (const key of KEYS) {
    const [here, there] = [one.locks.semaphore(key), two.locks.semaphore(key)];
    await here.trySetPermits(1);
    await here.acquire();
    await woken('redisson_sc:', there.acquire(1, { waitMs: 20_000 }), () => here.release());
    await here.addPermits(2);
    await there.drainPermits();
    await there.availablePermits();
    await there.delete();
    const [counted, waited] = [one.locks.countDownLatch(key), two.locks.countDownLatch(key)];
    await counted.trySetCount(2);
    await counted.countDown();
    const open = waited.wait({ waitMs: 20_000 });
    await woken('redisson_countdownlatch__channel__', open, () => counted.countDown());
    await counted.trySetCount(1);
    await counted.delete();
  }
};

describe('the smallest user of Redis that uses semaphores and latches, too,', () => {
  it('needs no more than the documents say', async () => {
    await useObjects(WITH_OBJECTS);
    expect(await refused()).toEqual([]);
  });

  it.each(OBJECT_RULES)('needs %s', async (rule) => {
    const fewer = WITH_OBJECTS.filter((candidate) => candidate !== rule);
    await expect(useObjects(fewer)).rejects.toBeInstanceOf(LockStoreError);
    const names = await refused();
    expect(names.length).toBeGreaterThan(0);
    const wanted = rule.slice(1).replace(/\*.*$/, '');
    expect(names.filter((name) => !name.startsWith(wanted))).toEqual([]);
  });

  it.each([
    '+get',
    '+set',
    '+del',
    '+publish',
    '+pttl',
    ...OBJECT_RULES.filter((rule) => rule.startsWith('+')),
  ])('loses nothing and gets nothing when it may not use %s any more', async (rule) => {
    const [one] = await openFor(WITH_OBJECTS);
    const semaphore = one.locks.semaphore('pool');
    const latch = one.locks.countDownLatch('import');
    await semaphore.trySetPermits(3);
    await latch.trySetCount(2);
    await lab.admin.call('ACL', 'SETUSER', documentedLogin.username, rule.replace('+', '-'));
    const request = [
      () => semaphore.release(),
      () => latch.countDown(),
      () => one.locks.semaphore('new').trySetPermits(1),
    ];
    let [free, left, isNew] = [3, 2, 0];
    const outcomes = await Promise.allSettled(request.map((one) => one()));
    if (outcomes[0]!.status === 'fulfilled') free += 1;
    if (outcomes[1]!.status === 'fulfilled') left -= 1;
    if (outcomes[2]!.status === 'fulfilled') isNew = 1;
    expect(Number(await lab.admin.get('lock:pool'))).toBe(free);
    expect(Number(await lab.admin.get('lock:import'))).toBe(left);
    expect(await lab.admin.exists('lock:new')).toBe(isNew);
  });
});
