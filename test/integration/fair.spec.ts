import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import type { Lease } from 'nest-redis-lock';
import { until, within } from '../support/async.js';
import { channelOf, holdName, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';

const lab = useLab();
const fair = { mode: 'fair' } as const;
const PATIENT = { mode: 'fair', waitMs: 20_000 } as const;
/** A waiter refreshes its queue entry, and retries, this often. */
const LOOK_MS = 1_000;

const listOf = (key: string): string => `redisson_lock_queue:{${holdName(key)}}`;
const setOf = (key: string): string => `redisson_lock_timeout:{${holdName(key)}}`;

/** Resolves once `count` waiters are queued, and the last one is subscribed. */
const untilQueued = (key: string, count: number): Promise<unknown> =>
  until(
    async () => {
      const queue = await lab.admin.lrange(listOf(key), 0, -1);
      const last = `${channelOf(key)}:${queue.at(-1)}`;
      const subscribed = queue.length === 0 || (await lab.channels()).includes(last);
      return queue.length === count && subscribed;
    },
    { what: `${count} wait for ${key}` },
  );

/** The messages that are sent about a key from now on: the end of the channel's name of each. */
const messagesOn = async (key: string) => {
  const listener = new Redis(lab.server.url);
  const messages: string[] = [];
  listener.on('pmessage', (_pattern: string, channel: string) =>
    messages.push(channel.slice(channelOf(key).length)),
  );
  await listener.psubscribe(`${channelOf(key)}*`);
  const done = lab.track({ [Symbol.asyncDispose]: () => Promise.resolve(listener.disconnect()) });
  return { messages, done };
};

describe('a fair lock', () => {
  it('is granted in the order of arrival, across all processes and within each', async () => {
    const services = [lab.open(), lab.open(), lab.open()];
    const key = newKey();
    const first = await services[0]!.locks.acquire(key, fair);
    const served: number[] = [];
    const tokens: number[] = [first.fencingToken];
    const callers: Promise<unknown>[] = [];
    for (let i = 0; i < 18; i += 1) {
      const { locks } = services[Math.floor(i / 2) % 3]!;
      callers.push(
        locks.withLock(key, PATIENT, ({ fencingToken }) => {
          served.push(i);
          tokens.push(fencingToken);
        }),
      );
      await untilQueued(key, i + 1);
    }
    const state = await services[1]!.locks.inspect(key);
    expect(state).toMatchObject({ kind: 'fair', holders: [{ owner: first.owner, count: 1 }] });
    expect(state?.waiting).toEqual(await lab.admin.lrange(listOf(key), 0, -1));
    await first.release();
    await within(10_000, Promise.all(callers));
    expect(served).toEqual(Array.from({ length: 18 }, (_, i) => i));
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    await lab.nothingLeft(...services);
  });

  it('wakes only the next one: each release is one message, to one owner', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const first = await one.locks.acquire(key, fair);
    const callers: Promise<unknown>[] = [];
    for (let i = 0; i < 8; i += 1) {
      callers.push((i % 2 ? one : two).locks.withLock(key, PATIENT, () => undefined));
      await untilQueued(key, i + 1);
    }
    const owners = await lab.admin.lrange(listOf(key), 0, -1);
    const { messages } = await messagesOn(key);
    await first.release();
    await within(10_000, Promise.all(callers));
    await until(() => messages.length >= 9);
    // The last holder has no successor, and publishes the release as an exclusive lock does.
    expect(messages).toEqual([...owners.map((owner) => `:${owner}`), '']);
  });

  it('is passed on by messages alone: no clock has to move for it', async () => {
    const [one, two] = [lab.openTimeless(), lab.openTimeless()];
    const key = newKey();
    const first = await one.locks.acquire(key, fair);
    const callers: Promise<unknown>[] = [];
    for (let i = 0; i < 6; i += 1) {
      callers.push((i % 2 ? one : two).locks.withLock(key, { ...fair, waitMs: Infinity }, () => undefined));
      await untilQueued(key, i + 1);
    }
    await first.release();
    await within(10_000, Promise.all(callers));
    await lab.nothingLeft(one, two);
  });

  it('whose first waiter gives up is looked at by the next one: a hold that stays for a while ends without a word', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    await one.locks.withLock(key, { ...fair, holdAtLeastMs: 3_000 }, () => undefined);
    const leaving = new AbortController();
    const first = one.locks.acquire(key, { ...PATIENT, signal: leaving.signal });
    await untilQueued(key, 1);
    const second = two.locks.acquire(key, PATIENT);
    await untilQueued(key, 2);
    const [, owner] = await lab.admin.lrange(listOf(key), 0, -1);
    const { messages } = await messagesOn(key);
    leaving.abort();
    await expect(first).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await until(() => messages.length > 0, { what: 'the next one is told' });
    expect(messages).toEqual([`:${owner}`]);
    await using _lease = await within(10_000, second);
  });

  it('is not granted to a caller that does not wait, while another one waits', async () => {
    const [one, two] = [lab.open(), lab.openTimeless()];
    const key = newKey();
    const first = await one.locks.acquire(key, fair);
    const waiting = two.locks.acquire(key, PATIENT);
    await untilQueued(key, 1);
    const released = first.release();
    expect(await one.locks.tryAcquire(key, fair)).toBeNull();
    await released;
    await using _lease = await within(5_000, waiting);
  });

  it('excludes callers that take the key without fair, and takes nested calls of either kind', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    await one.locks.withLock(key, fair, async (outer) => {
      expect(await two.locks.tryAcquire(key)).toBeNull();
      const isSame = ({ owner }: Lease) => expect(owner).toBe(outer.owner);
      await one.locks.withLock(key, { ...fair, inside: outer }, isSame);
      await one.locks.withLock(key, { inside: outer }, isSame);
    });
    await one.locks.withLock(key, async (inside) => {
      expect(await two.locks.tryAcquire(key, fair)).toBeNull();
      await one.locks.withLock(key, { ...fair, inside }, () => undefined);
    });
    const plain = await one.locks.acquire(key);
    const waiting = two.locks.acquire(key, PATIENT);
    await untilQueued(key, 1);
    // Nothing tells it: it looks.
    const releasedAt = performance.now();
    await plain.release();
    const lease = await waiting;
    expect(performance.now() - releasedAt).toBeLessThan(3 * LOOK_MS);
    const behind = one.locks.acquire(key, { waitMs: 20_000 });
    await lab.waiting(key);
    await lease.release();
    await (await within(LOOK_MS, behind)).release();
    await lab.nothingLeft(one, two);
  });

  it('takes several keys, all or none, and keeps a minimum time and a fixed lease', async () => {
    const { locks } = lab.open();
    const [a, b] = [newKey(), newKey()];
    await using lease = await locks.acquire([a, b], { ...fair, leaseMs: 5_000 });
    expect(lease.keys).toEqual([a, b]);
    for (const key of [a, b]) {
      expect((await lab.hold(key))?.leftMs).toBeLessThanOrEqual(5_000);
      expect((await locks.inspect(key))?.kind).toBe('fair');
    }
    const c = newKey();
    expect(await locks.tryAcquire([c, b], fair)).toBeNull();
    await until(async () => (await lab.hold(c)) === null);
    const endsAt = performance.now() + 1_000;
    await locks.withLock(c, { ...fair, holdAtLeastMs: 1_000 }, () => undefined);
    await locks.withLock(c, PATIENT, () => expect(performance.now()).toBeGreaterThan(endsAt - 5));
  });

  it('is renewed, and its loss is told', async () => {
    const [one, two] = [lab.open(SHORT_WATCHDOG), lab.open()];
    const lease = await one.locks.acquire(newKey(), fair);
    await lab.renewals(4);
    expect(await lease.verify()).toBe(true);
    const waiting = two.locks.acquire(lease.key, PATIENT);
    await untilQueued(lease.key, 1);
    expect(await two.locks.forceUnlock(lease.key)).toBe(true);
    await using next = await within(5_000, waiting);
    await until(() => lease.lost);
    expect(one.events('lost')).toMatchObject([{ key: lease.key, reason: 'refused' }]);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
  });

  it('refuses more waiters than maxWaiters', async () => {
    const { locks } = lab.open({ maxWaiters: 1 });
    const key = newKey();
    const lease = await locks.acquire(key, fair);
    const waiting = locks.acquire(key, PATIENT);
    await expect(locks.acquire(key, PATIENT)).rejects.toMatchObject({ code: 'LOCK_QUEUE_FULL' });
    await lease.release();
    await (await waiting).release();
  });
});

describe('a caller of a fair lock leaves no queue entry behind', () => {
  const heldBy = async () => {
    const [holder, waiter] = [lab.open(), lab.open({ commandTimeoutMs: 500, shutdownGraceMs: 5_000 })];
    const lease = await holder.locks.acquire(newKey(), fair);
    return { lease, key: lease.key, holder, waiter };
  };
  const queueIsEmpty = (key: string): Promise<unknown> =>
    until(async () => (await lab.admin.exists(listOf(key), setOf(key))) === 0, { what: 'nothing is left' });

  it('when it times out', async () => {
    const { key, waiter } = await heldBy();
    const waiting = waiter.locks.acquire(key, { ...fair, waitMs: 200 });
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_TAKEN', waitersAhead: 0 });
    const calledOff = new AbortController();
    const ahead = expect(waiter.locks.acquire(key, { ...PATIENT, signal: calledOff.signal })).rejects;
    await untilQueued(key, 1);
    const behind = waiter.locks.acquire(key, { ...fair, waitMs: 200 });
    await expect(behind).rejects.toMatchObject({ code: 'LOCK_TAKEN', waitersAhead: 1 });
    calledOff.abort();
    await ahead.toMatchObject({ code: 'LOCK_ABORTED' });
    await queueIsEmpty(key);
  });

  it('when it is aborted, and the entries behind stay as they are', async () => {
    const { key, lease, waiter } = await heldBy();
    const calledOff = new AbortController();
    const aborted = waiter.locks.acquire(key, { ...PATIENT, signal: calledOff.signal });
    await untilQueued(key, 1);
    const behind = waiter.locks.acquire(key, PATIENT);
    await untilQueued(key, 2);
    const [, second] = await lab.admin.lrange(listOf(key), 0, -1);
    const before = Number(await lab.admin.zscore(setOf(key), second!));
    calledOff.abort();
    await expect(aborted).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await until(async () => (await lab.admin.llen(listOf(key))) === 1);
    // Nothing is subtracted; meanwhile it may have been refreshed.
    expect(Number(await lab.admin.zscore(setOf(key), second!))).toBeGreaterThanOrEqual(before);
    expect(await lab.admin.lrange(listOf(key), 0, -1)).toEqual([second]);
    await lease.release();
    await (await behind).release();
    await queueIsEmpty(key);
  });

  it('when its app stops', async () => {
    const { key, waiter } = await heldBy();
    const stopped = expect(waiter.locks.acquire(key, PATIENT)).rejects.toMatchObject({
      code: 'LOCK_SHUTDOWN',
    });
    await untilQueued(key, 1);
    await waiter.close();
    await stopped;
    await queueIsEmpty(key);
  });

  it('when the reply never comes', async () => {
    const { key } = await heldBy();
    const proxy = await lab.proxy();
    const cut = lab.open({ commandTimeoutMs: 300 }, `redis://127.0.0.1:${proxy.port}`);
    await cut.locks.ping();
    const stop = proxy.onData((connection, direction, chunk) => {
      if (direction !== 'toServer' || !chunk.includes(listOf(key))) return;
      stop();
      connection.swallowReplies();
    });
    await expect(cut.locks.acquire(key, PATIENT)).rejects.toMatchObject({ outcome: 'unknown' });
    await queueIsEmpty(key);
    await until(() => cut.locks.usage.undoing === 0);
  });

  it('and wakes the next waiter, if it was the first and the lock is free', async () => {
    const [holder, first, second] = [lab.open(), lab.open(), lab.openTimeless()];
    const lease = await holder.locks.acquire(newKey(), fair);
    const calledOff = new AbortController();
    const aborted = first.locks.acquire(lease.key, { ...PATIENT, signal: calledOff.signal });
    await untilQueued(lease.key, 1);
    const waiting = second.locks.acquire(lease.key, { ...fair, waitMs: Infinity });
    await untilQueued(lease.key, 2);
    // It goes without a word, and before anybody looks the first one leaves.
    await lab.admin.del(holdName(lease.key));
    calledOff.abort();
    await expect(aborted).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await (await within(5_000, waiting)).release();
  });
});

describe('a waiter for a fair lock retries by itself', () => {
  it('when the blocking hold ends without a notification, at its time or before', async () => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const fixed = await holder.locks.acquire(newKey(), { ...fair, leaseMs: 1_200 });
    const waiting = waiter.locks.acquire(fixed.key, PATIENT);
    await untilQueued(fixed.key, 1);
    await using _next = await within(2_500, waiting);
    expect(fixed.lost).toBe(true);

    const lease = await holder.locks.acquire(newKey(), fair);
    const sooner = waiter.locks.acquire(lease.key, PATIENT);
    await untilQueued(lease.key, 1);
    await lab.admin.del(holdName(lease.key));
    await using _other = await within(3 * LOOK_MS, sooner);
  });

  it('and enqueues again when the wait queue is lost', async () => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const lease = await holder.locks.acquire(newKey(), fair);
    const waiting = waiter.locks.acquire(lease.key, PATIENT);
    await untilQueued(lease.key, 1);
    const before = await lab.admin.lrange(listOf(lease.key), 0, -1);
    await lab.admin.del(listOf(lease.key), setOf(lease.key));
    await untilQueued(lease.key, 1);
    expect(await lab.admin.lrange(listOf(lease.key), 0, -1)).not.toEqual(before);
    await lease.release();
    await (await within(LOOK_MS, waiting)).release();
    await lab.nothingLeft(holder, waiter);
  });

  it('and refreshes its queue entry for as long as it lives', async () => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const lease = await holder.locks.acquire(newKey(), fair);
    const waiting = waiter.locks.acquire(lease.key, PATIENT);
    await untilQueued(lease.key, 1);
    const [owner] = await lab.admin.lrange(listOf(lease.key), 0, -1);
    const moment = async (): Promise<number> => Number(await lab.admin.zscore(setOf(lease.key), owner!));
    const first = await moment();
    await until(async () => (await moment()) >= first + 2 * LOOK_MS);
    await lease.release();
    await (await waiting).release();
  });

  it('and gets the lock when the queue entry of a dead waiter has expired', async () => {
    const [holder, waiter] = [lab.open(SHORT_WATCHDOG), lab.open()];
    const dead = await lab.worker({ options: SHORT_WATCHDOG });
    const lease = await holder.locks.acquire(newKey(), fair);
    dead.send({ type: 'acquire', id: 'dead', keys: lease.key, options: PATIENT });
    await untilQueued(lease.key, 1);
    const waiting = waiter.locks.acquire(lease.key, PATIENT).then((next) => ({ next, at: Date.now() }));
    await untilQueued(lease.key, 2);
    await dead.kill('SIGKILL');
    const [first] = await lab.admin.lrange(listOf(lease.key), 0, -1);
    await lease.release();
    const deadAt = Number(await lab.admin.zscore(setOf(lease.key), first!));
    const { next, at } = await waiting;
    expect(at).toBeGreaterThanOrEqual(deadAt - 20);
    expect(at).toBeLessThan(deadAt + 2 * LOOK_MS);
    await next.release();
    await lab.nothingLeft(holder, waiter);
  }, 30_000);
});

describe('a name that is held as another kind of lock', () => {
  it.each([
    ['exclusive', {}],
    ['read', { mode: 'read' }],
    ['write', { mode: 'write' }],
  ] as const)(
    'by a call, here %s, is taken for a fair one, and the error says as what',
    async (heldAs, options) => {
      const [a, b] = [lab.open(), lab.open()];
      const key = newKey();
      const lease = await a.locks.acquire(key, options);
      for (const waitMs of [0, 50]) {
        await expect(b.locks.acquire(key, { ...fair, waitMs })).rejects.toMatchObject({
          code: 'LOCK_TAKEN',
          heldAs,
          message: expect.stringContaining(` ${heldAs} lock, which is another kind`) as string,
        });
      }
      expect(await lease.release()).toBe('released');
      const own = await a.locks.acquire(key, fair);
      await expect(b.locks.acquire(key, { ...fair, waitMs: 50 })).rejects.not.toHaveProperty('heldAs');
      await own.release();
      await lab.nothingLeft(a, b);
    },
  );
});
