import { Module } from '@nestjs/common';
import { RedisStore } from 'nest-redis-lock/redis';
import { NestFactory } from '@nestjs/core';
import { LockConfigurationError, LockService, RedisLockModule } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { freePort } from '../support/loopback.js';
import {
  documentedLogin,
  DOCUMENTED_RULES,
  QUEUE_RULES,
  userWith,
} from '../support/redis/documented-user.js';
import { holdName, newKey, useLab } from '../support/redis/lab.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';

failOnUnhandledRejections();

/*
 * The rights for the wait queue. A Redis user that lacks one of them keeps the app from starting. Rights that are
 * removed later fail the calls that need them.
 */

/** A wait that took longer ended with a lease, and not with a failure or the release. */
const SOON_MS = 8_000;

/** Without this right, foreign waiters are not counted. No call fails. */
const COUNTING = '+pubsub|numsub';

const lab = useLab();

const queueOf = (key: string): string => `nest_redis_lock:queue:{${holdName(key)}}`;

/** Returns what keeps an app of this Redis user from starting; undefined when it starts. */
const startFailure = async (redis: object, commandTimeoutMs = 2_000): Promise<unknown> => {
  const store = new RedisStore({ redis, commandTimeoutMs });
  @Module({ imports: [RedisLockModule.forRoot({ store })] })
  class AppModule {}
  try {
    const app = await NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
    await app.close();
    return undefined;
  } catch (error) {
    return error;
  }
};

describe('an app whose Redis user lacks a right for the wait queue', () => {
  it.each([...QUEUE_RULES, '~nest_redis_lock:*'])('%s: does not start, and is told which', async (rule) => {
    const user = await userWith(
      lab,
      DOCUMENTED_RULES.filter((one) => one !== rule),
    );
    const failure = await startFailure(user);
    expect(failure).toBeInstanceOf(LockConfigurationError);
    expect((failure as Error).message).toContain(`lacks these ACL rules: ${rule}. `);
    await lab.nothingLeft();
  });

  it('all: is told all of them at once', async () => {
    const rules = DOCUMENTED_RULES.filter((one) => !QUEUE_RULES.includes(one));
    const failure = (await startFailure(await userWith(lab, rules))) as Error;
    const named = /lacks these ACL rules: (.*?)\. /.exec(failure.message)?.[1]?.split(' ');
    expect(new Set(named)).toEqual(new Set(QUEUE_RULES));
  });

  it('none: starts, and leaves no key of the check', async () => {
    expect(await startFailure(await userWith(lab, DOCUMENTED_RULES))).toBeUndefined();
    expect(await lab.admin.keys('*')).toEqual([]);
  });

  it('and whose Redis is full: is not told of rights', async () => {
    const user = await userWith(lab, DOCUMENTED_RULES);
    await lab.admin.config('SET', 'maxmemory', 1);
    try {
      expect(await startFailure(user)).toBeUndefined();
    } finally {
      await lab.admin.config('SET', 'maxmemory', 0);
    }
  });
});

describe('an app whose Redis cannot be reached', () => {
  it('starts without a wait for the command time-out', async () => {
    const startedAt = performance.now();
    const redis = { port: await freePort() };
    expect(await startFailure(redis, 2 * SOON_MS)).toBeUndefined();
    expect(performance.now() - startedAt).toBeLessThan(SOON_MS);
  });
});

/** A failure that names the key, and what the server refused. */
const refusalOf = (key: string) => ({
  code: 'LOCK_STORE_FAILED',
  key,
  message: expect.stringMatching(/permission|can't run|can't access/) as string,
});

describe('a right for the wait queue that is removed while the app runs', () => {
  /** As an operator would take it away. */
  const taking = (rule: string): string[] =>
    rule.startsWith('&') ? ['resetchannels', '&redisson_lock__channel:*'] : [rule.replace('+', '-')];

  it.each(QUEUE_RULES.filter((rule) => rule !== COUNTING))(
    '%s: each waiter is served or fails by name, and the key works again with the right',
    async (rule) => {
      const user = await userWith(lab, DOCUMENTED_RULES);
      const [one, two, three] = [lab.open({}, user), lab.open({}, user), lab.open({}, user)];
      const key = newKey();
      const lease = await one.locks.acquire(key, { leaseMs: 2_000 });
      let inside = 0;
      const waits = Promise.allSettled(
        [two, three].map((opened) =>
          opened.locks.withLock(key, { waitMs: 60_000 }, async () => {
            expect((inside += 1)).toBe(1);
            await opened.locks.ping();
            inside -= 1;
          }),
        ),
      );
      await until(async () => (await lab.admin.hget(queueOf(key), 'last')) === '2');
      await lab.waiting(key, 2);
      await lab.admin.call('ACL', 'SETUSER', documentedLogin.username, ...taking(rule));
      await lease.release().catch((error: unknown) => expect(error).toMatchObject({ key }));
      for (const end of await within(SOON_MS, waits)) {
        if (end.status === 'rejected') expect(end.reason).toMatchObject(refusalOf(key));
      }
      // Only to leave the queue takes HDEL.
      const blocker = await lab.open().locks.acquire('other');
      const later = two.locks.acquire('other', { waitMs: 60_000 });
      if (rule !== '+hdel') await expect(within(SOON_MS, later)).rejects.toMatchObject(refusalOf('other'));
      await blocker.release();
      await within(SOON_MS, later).catch((error: unknown) => expect(error).toMatchObject(refusalOf('other')));
      await lab.admin.call('ACL', 'SETUSER', documentedLogin.username, rule);
      for (const { locks } of [one, two, three]) {
        await until(() => locks.withLock(key, { waitMs: 2_000 }, () => true));
      }
      for (const name of await lab.admin.keys('*lock:*')) {
        if (!name.includes(':fence:')) expect(await lab.admin.pttl(name), name).not.toBe(-1);
      }
    },
  );

  it(`${COUNTING}: all waiters are served`, async () => {
    const user = await userWith(lab, DOCUMENTED_RULES);
    const [one, two] = [lab.open({}, user), lab.open({}, user)];
    await lab.admin.call('ACL', 'SETUSER', documentedLogin.username, ...taking(COUNTING));
    for (const [holder, waiter] of [[one, two] as const, [two, one] as const]) {
      const lease = await holder.locks.acquire('order');
      const waiting = waiter.locks.acquire('order', { waitMs: 60_000 });
      await lab.waiting('order');
      await lease.release();
      await (await within(SOON_MS, waiting)).release();
    }
  });
});

it('a service in the app hears nothing of rights that it has', async () => {
  @Module({ imports: [RedisLockModule.forRoot({ redis: await userWith(lab, DOCUMENTED_RULES) })] })
  class AppModule {}
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  try {
    expect(await app.get(LockService).withLock('order', () => 'ran')).toBe('ran');
  } finally {
    await app.close();
  }
});
