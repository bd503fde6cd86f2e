import { Redis } from 'ioredis';
import { LockStoreError, type LockService } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { RedisKeys } from '../../lib/stores/redis/redis-keys.js';
import { holdName, newKey, useLab } from '../support/redis/lab.js';

/*
 * Calls within one tick share requests (scripts/batch.ts). Callers notice only the speed: each gets the reply that it
 * would get by itself.
 */
const lab = useLab({ users: ['default on nopass ~* &* +@all'] });

const CALLERS = 50;

/** What became of all callers who came at once, each with a key of its own. */
const atOnce = <T>(
  keys: readonly string[],
  call: (key: string) => Promise<T>,
): Promise<PromiseSettledResult<T>[]> => Promise.allSettled(keys.map((key) => call(key)));

const keysOf = (count: number): string[] => Array.from({ length: count }, () => newKey());

const requests = async (): Promise<number> => {
  const { evalsha = 0, eval: inFull = 0 } = await lab.calls();
  return evalsha + inFull;
};

const statusOf = ({ status }: PromiseSettledResult<unknown>): string => status;

describe('callers who come in the same tick', () => {
  it('share requests, to acquire and to release', async () => {
    const { locks } = lab.open();
    await locks.ping();
    const before = await requests();
    const ran = await atOnce(keysOf(CALLERS), (key) => locks.withLock(key, (lease) => lease.fencingToken));
    expect(ran.map(statusOf)).toEqual(Array.from({ length: CALLERS }, () => 'fulfilled'));
    expect((await requests()) - before).toBeLessThan(CALLERS / 2);
    expect(await lab.leftovers()).toEqual([]);
  });

  it('each get a hold of their own, and where several keys share a slot tokens that differ', async () => {
    const { locks } = lab.open();
    await locks.ping();
    const keys = keysOf(CALLERS).map((key, i) => `${key}:{${i % 3}}`);
    const leases = await Promise.all(keys.map((key) => locks.acquire(key)));
    const owners = await Promise.all(keys.map(async (key) => (await lab.hold(key))!.owner));
    expect(new Set(owners).size).toBe(CALLERS);
    for (const slot of [0, 1, 2]) {
      const tokens = leases.filter((_, i) => i % 3 === slot).map((lease) => lease.fencingToken);
      expect(new Set(tokens).size).toBe(tokens.length);
    }
    for (const key of keys) expect((await lab.hold(key))!.leftMs).toBeGreaterThan(25_000);
    expect(new Set(await Promise.all(leases.map((lease) => lease.release())))).toEqual(new Set(['released']));
    expect(await lab.leftovers()).toEqual([]);
  });

  it('are told that a lock is taken, that it was lost, and that it was released, each of their own', async () => {
    const [one, two] = [lab.open().locks, lab.open().locks];
    const [taken, lost, ...free] = keysOf(CALLERS);
    const foreign = await two.acquire(taken!);
    const doomed = await one.acquire(lost!);
    await lab.admin.del(holdName(lost!));
    const endings = await Promise.all([
      one.tryAcquire(taken!),
      doomed.release(),
      ...free.map((key) => one.withLock(key, () => 'ran')),
    ]);
    expect(endings).toEqual([null, 'lost', ...free.map(() => 'ran')]);
    expect(await foreign.release()).toBe('released');
  });

  it('that wait are woken by a release that shared its request', async () => {
    const [one, two] = [lab.open().locks, lab.openTimeless().locks];
    const keys = keysOf(10);
    const leases = await Promise.all(keys.map((key) => one.acquire(key)));
    const waiting = Promise.all(keys.map((key) => two.acquire(key, { waitMs: 20_000 })));
    for (const key of keys) await lab.waiting(key);
    await Promise.all(leases.map((lease) => lease.release()));
    for (const lease of await waiting) expect(await lease.release()).toBe('released');
  });

  it('are served also after Redis has forgotten the scripts', async () => {
    const { locks } = lab.open();
    await locks.ping();
    for (let i = 0; i < 2; i += 1) {
      await lab.admin.script('FLUSH');
      const ran = await atOnce(keysOf(CALLERS), (key) => locks.withLock(key, () => 'ran'));
      expect(ran.map(statusOf)).toEqual(Array.from({ length: CALLERS }, () => 'fulfilled'));
    }
    const { eval: inFull } = await lab.calls();
    expect(inFull).toBeGreaterThan(0);
  });

  it('are not overtaken by what is asked after them and shares no request', async () => {
    const { locks } = lab.open();
    await locks.ping();
    const keys = keysOf(10);
    const acquired = Promise.all(keys.map((key) => locks.acquire(key)));
    expect(await locks.forceUnlock(keys.at(-1)!)).toBe(true);
    const [last, ...others] = (await acquired).reverse();
    // Its caller has heard of the grant first, and lost it, or of the forced unlock, and asked again.
    expect(['lost', 'released']).toContain(await last!.release());
    expect(new Set(await Promise.all(others.map((lease) => lease.release())))).toEqual(new Set(['released']));
  });

  it('need no fence key when fencing is off', async () => {
    const { locks } = lab.open({ fencing: false });
    await locks.ping();
    await atOnce(keysOf(CALLERS), (key) => locks.withLock(key, () => 'ran'));
    expect(await lab.admin.keys('*')).toEqual([]);
  });
});

/** In the middle of a batch; the first caller is alone and in none. */
const TROUBLED = 7;

/** Calls of many at once, of which exactly that one fails. */
const expectOnlyOneToFail = async (
  locks: LockService,
  keys: readonly string[],
  message: RegExp,
): Promise<void> => {
  await locks.ping();
  const others = await atOnce(keys, (key) => locks.withLock(key, () => 'ran'));
  const [troubled] = others.splice(TROUBLED, 1);
  expect(troubled).toMatchObject({ status: 'rejected' });
  const { reason } = troubled as PromiseRejectedResult;
  expect(reason).toBeInstanceOf(LockStoreError);
  expect(reason).toMatchObject({ outcome: 'not-executed', key: keys[TROUBLED] });
  expect((reason as Error).message).toMatch(message);
  expect(others).toEqual(others.map(() => ({ status: 'fulfilled', value: 'ran' })));
};

describe('the trouble of one of them is not that of the others', () => {
  it('a foreign value has the name of its key', async () => {
    const keys = keysOf(CALLERS);
    await lab.admin.set(holdName(keys[TROUBLED]!), 'foreign');
    await expectOnlyOneToFail(lab.open().locks, keys, /WRONGTYPE/);
    expect(await lab.admin.get(holdName(keys[TROUBLED]!))).toBe('foreign');
  });

  it('a foreign value has the name of a key that is asked for while others are released', async () => {
    const { locks } = lab.open();
    const foreign = newKey();
    await lab.admin.set(holdName(foreign), 'foreign');
    const leases = await Promise.all(keysOf(10).map((key) => locks.acquire(key)));
    const early = leases.splice(0, 5).map((lease) => lease.release());
    const troubled = locks.acquire(foreign).catch((error: unknown) => error);
    const late = leases.map((lease) => lease.release());
    expect(await troubled).toBeInstanceOf(LockStoreError);
    expect(new Set(await Promise.all([...early, ...late]))).toEqual(new Set(['released']));
  });

  it('the fence key of its slot holds no number', async () => {
    const keys = keysOf(CALLERS);
    await lab.admin.set(new RedisKeys('').fence(holdName(keys[TROUBLED]!)), 'foreign');
    await expectOnlyOneToFail(lab.open().locks, keys, /FENCE/);
  });

  it('the user may not use its key', async () => {
    const keys = keysOf(CALLERS).with(TROUBLED, 'forbidden');
    const rules = ['on', '>secret', '+@all', '&*', '~lock:key*', '~nest_redis_lock:*'];
    await lab.admin.call('ACL', 'SETUSER', 'app', ...rules);
    const user = { ...lab.server.clientOptions(), username: 'app', password: 'secret' };
    await expectOnlyOneToFail(lab.open({}, user).locks, keys, /NOPERM|permission/i);
  });
});

describe('when the answer to a shared request is lost', () => {
  it('all of them fail with an unknown outcome, and their holds are released', async () => {
    const proxy = await lab.proxy();
    const opened = lab.open({ commandTimeoutMs: 400 }, proxy.url);
    await opened.locks.ping();
    const [connection] = proxy.find('ping');
    connection!.swallowReplies();
    const ends = await atOnce(keysOf(CALLERS), (key) => opened.locks.acquire(key));
    for (const end of ends) {
      expect(end).toMatchObject({
        status: 'rejected',
        reason: { code: 'LOCK_STORE_FAILED', outcome: 'unknown' },
      });
    }
    await lab.nothingLeft(opened);
  });
});

describe('when the connection goes before the request has left', () => {
  it('it leaves on the next one', async () => {
    const clients: Redis[] = [];
    const { locks } = lab.open({}, (_role, settings) => {
      const client = new Redis({ ...lab.server.clientOptions(), ...settings });
      clients.push(client);
      return client;
    });
    await locks.ping();
    const calls = atOnce(keysOf(CALLERS), (key) => locks.withLock(key, () => 'ran'));
    // In the same tick: what was gathered has not left. The server has not noticed; the first was alone, and is answered.
    clients[0]!.emit('close');
    clients[0]!.emit('ready');
    expect((await calls).map(statusOf)).toEqual(Array.from({ length: CALLERS }, () => 'fulfilled'));
  });
});
