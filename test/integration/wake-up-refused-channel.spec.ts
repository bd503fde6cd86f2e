import type { RedisOptions } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { channelOf, Lab } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';

/*
 * After a reconnect one SUBSCRIBE names many channels, and Redis refuses all of them for one that the user may not
 * hear. Waiters on the other channels must not notice.
 */
const ALL = ['~*', '&*', '+@all'];
const SOON_MS = 10_000;

let lab: Lab;
beforeEach(async () => {
  lab = await Lab.start({ users: [`app on >secret ${ALL.join(' ')}`] });
});
afterEach(() => lab[Symbol.asyncDispose]());

const mayReceive = (...channels: readonly string[]) =>
  lab.admin.call(
    'ACL',
    'SETUSER',
    'app',
    'reset',
    'on',
    '>secret',
    '~*',
    '+@all',
    '&nest_redis_lock:grant:*',
    ...channels.map((one) => `&${one}`),
  );

/** A service whose callers wait for keys that others hold. */
const waitFor = async (keys: readonly string[]) => {
  const user: RedisOptions = { ...lab.server.clientOptions(), username: 'app', password: 'secret' };
  const [holder, waiter]: OpenLocks[] = [lab.open(), lab.open({ waitMs: 60_000 }, user)];
  const leases = await Promise.all(keys.map((key) => holder!.locks.acquire(key)));
  const waits = keys.map((key) => waiter!.locks.acquire(key));
  for (const wait of waits) wait.catch(() => undefined);
  await Promise.all(keys.map((key) => lab.waiting(key)));
  return { holder: holder!, waiter: waiter!, leases, waits };
};

describe('a channel that is refused when many are subscribed again', () => {
  it.each([
    ['first', 0],
    ['in the middle', 30],
    ['last', 59],
  ])('%s: only who waits for it hears of it; all others are woken', async (_where, bad) => {
    const keys = Array.from({ length: 60 }, (_, i) => `key-${i}`);
    const { holder, waiter, leases, waits } = await waitFor(keys);
    // Redis itself ends the connection of a user who may not hear any more what it listens to.
    await mayReceive(...keys.filter((_, i) => i !== bad).map(channelOf));
    await expect(within(SOON_MS, waits[bad]!)).rejects.toMatchObject({
      code: 'LOCK_STORE_FAILED',
      key: keys[bad],
      message: expect.stringContaining('SUBSCRIBE') as string,
    });
    for (const [i, lease] of leases.entries()) {
      if (i === bad) continue;
      await lab.waiting(keys[i]!);
      await lease.release();
      await (await within(SOON_MS, waits[i]!, `the waiter ${i}`)).release();
    }
    await leases[bad]!.release();
    await lab.nothingLeft(holder, waiter);
  });

  it('beside others that are refused: each of them hears of it, and all else goes on', async () => {
    const keys = Array.from({ length: 16 }, (_, i) => `key-${i}`);
    const bad = new Set([0, 1, 7, 8, 13, 15]);
    const { leases, waits } = await waitFor(keys);
    await mayReceive(...keys.filter((_, i) => !bad.has(i)).map(channelOf));
    const refused: number[] = [];
    for (const [i, wait] of waits.entries()) wait.catch(() => refused.push(i));
    await until(() => refused.length === bad.size);
    expect(new Set(refused)).toEqual(bad);
    for (const [i, lease] of leases.entries()) {
      if (!bad.has(i)) await lab.waiting(keys[i]!);
      await lease.release();
      if (!bad.has(i)) await (await within(SOON_MS, waits[i]!, `the waiter ${i}`)).release();
    }
  });

  it('and has no waiter any more when it is refused again: no caller notices', async () => {
    const { waiter, leases, waits } = await waitFor(['good', 'bad']);
    await mayReceive(channelOf('good'));
    await expect(within(SOON_MS, waits[1]!)).rejects.toMatchObject({ key: 'bad' });
    await lab.waiting('good');
    expect(waiter.store.subscriptions).toBe(1);
    await leases[0]!.release();
    await (await within(SOON_MS, waits[0]!)).release();
    await leases[1]!.release();
  });
});
