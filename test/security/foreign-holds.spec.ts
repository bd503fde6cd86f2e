import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { holdName, useLab } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';
import { codeOf, inTime } from './support/replies.js';
import { addOwners, BEYOND_COUNTING_MS, FOREIGN_HASHES, OTHER_TYPES } from './support/foreign-holds.js';

const COMMAND_TIMEOUT_MS = 5_000;
const NAME = holdName('order');

failOnUnhandledRejections();
const lab = useLab();

const open = (): OpenLocks => lab.open({ commandTimeoutMs: COMMAND_TIMEOUT_MS });
const bounded = <T>(requested: Promise<T>, waitMs = 0): Promise<T> =>
  inTime(requested, waitMs, COMMAND_TIMEOUT_MS);

/** What is at the name, byte for byte (as a hash: comparing megabytes one by one takes long), and when it ends. */
const whatIsThere = async () => ({
  value: createHash('sha256')
    .update((await lab.admin.dumpBuffer(NAME)) ?? 'nothing')
    .digest('hex'),
  endsAt: await lab.admin.pexpiretime(NAME),
});

/** How often a whole hash was read. */
const readsOfAll = async (): Promise<number> => {
  const { hgetall = 0, hkeys = 0, hvals = 0, hrandfield = 0 } = await lab.calls();
  return hgetall + hkeys + hvals + hrandfield;
};

/** Every way to want the lock, each with the code of the error it ends with. */
const wantIt = async ({ locks }: OpenLocks): Promise<Record<string, string>> => ({
  acquire: await bounded(codeOf(locks.acquire('order', { waitMs: 30 })), 30),
  'acquire without waiting': await bounded(codeOf(locks.acquire('order', { waitMs: 0 }))),
  withLock: await bounded(codeOf(locks.withLock('order', { waitMs: 0 }, () => expect.fail('it ran')))),
  'withLock of several': await bounded(
    codeOf(locks.withLock(['another', 'order'], { waitMs: 30 }, () => expect.fail('it ran'))),
    30,
  ),
});

const all = (code: string) => ({
  acquire: code,
  'acquire without waiting': code,
  withLock: code,
  'withLock of several': code,
});

/** No event says that the store is down, and every other key can be locked. */
const nothingElseIsTouched = async ({ locks, events }: OpenLocks): Promise<void> => {
  expect(await bounded(locks.withLock('another', { waitMs: 0 }, () => 'ran'))).toBe('ran');
  expect(events('store-down')).toEqual([]);
};

describe('a foreign hash in place of a hold', () => {
  it.each(Object.entries(FOREIGN_HASHES))(
    '%s: the lock is taken, for as long as that is there and not longer',
    async (_what, { plant, holders }) => {
      const opened = open();
      const { locks } = opened;
      await plant(lab.admin, NAME);
      const before = await whatIsThere();
      const reads = await readsOfAll();
      expect(await wantIt(opened)).toEqual(all('LOCK_TAKEN'));
      expect(await bounded(locks.tryAcquire('order'))).toBeNull();
      expect(await bounded(locks.inspect('order'))).toMatchObject({
        holders: expect.arrayContaining(
          holders.map((holder) => expect.objectContaining(holder) as unknown),
        ) as unknown[],
      });
      expect(await bounded(locks.isLocked('order'))).toBe(true);
      expect(await whatIsThere()).toEqual(before);
      expect(await readsOfAll(), 'no command whose time grows with the hash').toBe(reads);
      await nothingElseIsTouched(opened);
      const waiting = locks.acquire('order', { waitMs: 20_000 });
      await lab.waiting('order');
      expect(await bounded(locks.forceUnlock('order'))).toBe(true);
      expect(await (await within(10_000, waiting)).release()).toBe('released');
      await lab.nothingLeft(opened);
    },
  );

  it('however large, inspect brings no more of it than a hold of ours has', async () => {
    const { plant } = FOREIGN_HASHES['a field of eight megabytes']!;
    await plant(lab.admin, NAME);
    await using proxy = await lab.proxy();
    let bytes = 0;
    proxy.onData((_connection, direction, chunk) => {
      if (direction === 'toClient') bytes += chunk.length;
    });
    const { locks } = lab.open({ commandTimeoutMs: COMMAND_TIMEOUT_MS }, proxy.url);
    const hold = (await locks.inspect('order'))?.holders[0];
    expect(hold?.owner).toMatch(/^x+$/);
    expect(bytes).toBeLessThan(64 * 1024);
  });

  it.each(['no end', 'an end in 2^53 ms', 'an end as far away as there is'])(
    '%s: does not make a waiter without a limit ask again and again',
    async (what) => {
      const { locks } = open();
      await FOREIGN_HASHES[what]!.plant(lab.admin, NAME);
      const gone = new AbortController();
      const waiting = locks.acquire('order', { waitMs: Infinity, signal: gone.signal });
      await lab.waiting('order');
      // Time passes: a timer that is too long for Node would fire at once, all the while.
      const lease = await locks.acquire('clock', { leaseMs: 300 });
      const before = (await lab.calls())['evalsha'] ?? 0;
      await until(() => lease.lost);
      expect(((await lab.calls())['evalsha'] ?? 0) - before).toBeLessThanOrEqual(3);
      gone.abort();
      expect(await codeOf(waiting)).toBe('LOCK_ABORTED');
    },
  );

  it('without a time to live and deleted without a message: a waiter finds out', async () => {
    const { locks } = open();
    await lab.admin.hset(NAME, 'somebody:1', '1');
    const waiting = locks.acquire('order', { waitMs: 20_000 });
    await lab.waiting('order');
    await lab.admin.del(NAME);
    expect(await (await within(10_000, waiting)).release()).toBe('released');
  });
});

describe('another type in place of a hold', () => {
  it.each(Object.entries(OTHER_TYPES))(
    '%s: a failure of the store that names its cause, never "taken", until it is removed',
    async (_what, plant) => {
      const opened = open();
      const { locks } = opened;
      await plant(lab.admin, NAME);
      const before = await whatIsThere();
      expect(await wantIt(opened)).toEqual(all('LOCK_STORE_FAILED'));
      for (const request of [
        (): Promise<unknown> => locks.tryAcquire('order'),
        () => locks.inspect('order'),
        () => locks.isLocked('order'),
        () => locks.forceUnlock('order'),
      ]) {
        await expect(bounded(request())).rejects.toMatchObject({
          code: 'LOCK_STORE_FAILED',
          outcome: 'not-executed',
          // Without names that contain the key, and with the end of one sentence.
          message: expect.stringMatching(
            /: Redis has something of another type at a name of the key(?: or "nest_redis_lock:fence:\{\d+\}")?: WRONGTYPE [^.]+[^.]\. This says [^.]+\. Use another key, or another keyPrefix\.$/,
          ) as string,
          cause: expect.objectContaining({
            message: expect.stringContaining('WRONGTYPE') as string,
          }) as Error,
        });
      }
      expect(await whatIsThere()).toEqual(before);
      await nothingElseIsTouched(opened);
      await lab.admin.del(NAME);
      expect(await locks.withLock('order', { waitMs: 0 }, () => 'ran')).toBe('ran');
      await lab.nothingLeft(opened);
    },
  );
});

describe('a hold of our own that a stranger', () => {
  interface Tampering {
    /** What becomes of extend() and of release() then. */
    readonly extend: string;
    readonly release: string;
    /** Whether the new value belongs to another owner, and stays. */
    readonly stays?: boolean;
    readonly tamper: (owner: string) => Promise<unknown>;
  }

  const fine = { extend: 'no error', release: 'released' };
  const lost = { extend: 'LOCK_LOST', release: 'lost' };
  const replaceWith = (plant: () => Promise<unknown>) => async () => {
    await lab.admin.del(NAME);
    await plant();
  };

  const TAMPERINGS: Readonly<Record<string, Tampering>> = {
    'gave a count that is text': { ...fine, tamper: (owner) => lab.admin.hset(NAME, owner, 'x') },
    'gave a count below zero': { ...fine, tamper: (owner) => lab.admin.hset(NAME, owner, '-7') },
    'gave a count beyond 64 bits': {
      ...fine,
      tamper: (owner) => lab.admin.hset(NAME, owner, '9'.repeat(400)),
    },
    'gave 100,000 other owners': { ...fine, tamper: () => addOwners(lab.admin, NAME, 100_000) },
    'left without an end': { ...fine, tamper: () => lab.admin.persist(NAME) },
    'gave an end in 2^53 ms': { ...fine, tamper: () => lab.admin.pexpire(NAME, BEYOND_COUNTING_MS) },
    'let end at once': { ...lost, tamper: () => lab.admin.pexpire(NAME, 0) },
    deleted: { ...lost, tamper: () => lab.admin.del(NAME) },
    'renamed away': { ...lost, tamper: () => lab.admin.rename(NAME, 'elsewhere') },
    "replaced by another's": {
      ...lost,
      stays: true,
      tamper: replaceWith(() => lab.admin.hset(NAME, 'somebody:1', '1')),
    },
    ...Object.fromEntries(
      Object.entries(OTHER_TYPES).map(([type, plant]) => [
        `replaced by ${type}`,
        { ...lost, stays: true, tamper: replaceWith(() => plant(lab.admin, NAME)) },
      ]),
    ),
  };

  /** A lease whose hold has been tampered with, and what is there since. */
  const tamperedWith = async ({ tamper }: Tampering) => {
    const opened = open();
    const lease = await opened.locks.acquire('order');
    await tamper((await lab.hold('order'))!.owner);
    return { opened, lease, foreign: await whatIsThere() };
  };

  /** Once the foreign thing is gone the lock can be had, and the service has forgotten all about it. */
  const worksAgain = async (opened: OpenLocks) => {
    await nothingElseIsTouched(opened);
    await lab.admin.del(NAME, 'elsewhere');
    expect(await opened.locks.withLock('order', { waitMs: 0 }, () => 'ran')).toBe('ran');
    await lab.nothingLeft(opened);
  };

  it.each(Object.entries(TAMPERINGS))('%s: extend says what became of it', async (_, tampering) => {
    const { opened, lease, foreign } = await tamperedWith(tampering);
    expect(await bounded(codeOf(lease.extend(50_000)))).toBe(tampering.extend);
    if (tampering.extend === 'no error') {
      expect(lease.remainingMs()).toBeGreaterThan(40_000);
      expect(await lab.admin.pttl(NAME)).toBeGreaterThan(40_000);
    } else expect(await whatIsThere()).toEqual(foreign);
    await lease[Symbol.asyncDispose]();
    await worksAgain(opened);
  });

  it.each(Object.entries(TAMPERINGS))('%s: release says what became of it', async (_, tampering) => {
    const { opened, lease, foreign } = await tamperedWith(tampering);
    const ended = await bounded(lease.release().catch((error: { code: string }) => error.code));
    expect(ended).toBe(tampering.release);
    if (tampering.stays) expect(await whatIsThere()).toEqual(foreign);
    else expect(await lab.admin.exists(NAME)).toBe(0);
    await worksAgain(opened);
  });
});
