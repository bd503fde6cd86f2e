import fc from 'fast-check';
import { LockKeyError, type LockService } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { hashSlot, tagOfSlot } from '../../lib/stores/redis/hash-slot.js';
import { until, within } from '../support/async.js';
import { holdName, useLab } from '../support/redis/lab.js';
import { codeOf } from './support/replies.js';
import { HOSTILE_TEXTS, REFUSED_BRACES, REFUSED_TEXTS } from './support/hostile-texts.js';
import { keySpaceOf, plantBystanders, rawName, touchedBetween } from './support/key-space.js';

/*
 * That each store keeps such keys apart is a part of the contract (test/contract/parts/hostile-keys.ts). Here it is
 * about the whole way through the service, and about everything else there is in Redis.
 */
const lab = useLab();

/** What Redis was asked to do, on its own or in scripts. */
const commandsSince = async (before: Readonly<Record<string, number>>): Promise<string[]> => {
  const after = await lab.calls();
  return Object.keys(after).filter((command) => after[command] !== before[command]);
};

/** All a lock can be used for, with a second process that waits for it. Answers what of Redis differed meanwhile. */
const useEverythingOf = async (key: string, one: LockService, two: LockService) => {
  const before = await keySpaceOf(lab.admin);
  const lease = await one.acquire(key);
  const whileHeld = await keySpaceOf(lab.admin);
  const waiting = two.acquire(key, { waitMs: 20_000 });
  const channel = key.includes('{') ? holdName(key) : `{${holdName(key)}}`;
  await untilSubscribed(`redisson_lock__channel:${channel}`);
  await lease.extend(60_000);
  expect(await two.inspect(key)).toMatchObject({ holders: [{ count: 1 }] });
  const channels = await lab.channels();
  expect(await lease.release()).toBe('released');
  const next = await within(10_000, waiting);
  expect(await one.forceUnlock(key)).toBe(true);
  expect(await one.isLocked(key)).toBe(false);
  expect(await next.release()).toBe('lost');
  // A wait queue stays for a second after a foreign caller got its lock.
  const afterwards = await until(async () => {
    const keySpace = await keySpaceOf(lab.admin);
    return touchedBetween(before, keySpace).every((name) => !name.includes(':line:')) && keySpace;
  });
  return {
    whileHeld: touchedBetween(before, whileHeld),
    after: touchedBetween(before, afterwards),
    channels,
  };
};

/** Resolves once a client listens on the channel. */
const untilSubscribed = (channel: string): Promise<unknown> =>
  until(async () => ((await lab.admin.pubsub('NUMSUB', channel)) as [string, number])[1], {
    what: `somebody listens on ${channel}`,
  });

describe('a hostile key', () => {
  it('touches what has exactly its name, and nothing else: all the rest of Redis is as it was', async () => {
    await plantBystanders(lab.admin);
    const [one, two] = [lab.open({ holderInfo: false }).locks, lab.open({ holderInfo: false }).locks];
    const before = await lab.calls();
    for (const [what, key] of Object.entries(HOSTILE_TEXTS)) {
      const { whileHeld, after, channels } = await useEverythingOf(key, one, two);
      expect(whileHeld, what).toEqual([rawName(holdName(key))]);
      expect(after, what).toEqual([]);
      expect(channels, what).toHaveLength(1);
    }
    const commands = await commandsSince(before);
    expect(commands).toContain('hset');
    expect(commands.filter((command) => /flush|swapdb|rename|config|debug|function/.test(command))).toEqual(
      [],
    );
  });

  it('never meets another one: all are held at the same time, each by its own owner', async () => {
    const [one, two] = [lab.open().locks, lab.open().locks];
    const keys = Object.values(HOSTILE_TEXTS);
    for (const key of keys) await one.acquire(key, { waitMs: 0 });
    const holds = await Promise.all(keys.map((key) => two.inspect(key)));
    expect(new Set(holds.map((hold) => hold?.holders[0]?.owner)).size).toBe(keys.length);
    for (const key of keys) expect(await two.tryAcquire(key)).toBeNull();
    expect((await lab.leftovers()).length).toBe(keys.length);
  });

  it('goes together with others: several at once are all or none', async () => {
    const [one, two] = [lab.open().locks, lab.open().locks];
    const keys = Object.values(HOSTILE_TEXTS);
    await one.withLock(keys, async ({ keys: taken }) => {
      expect([...taken].sort()).toEqual([...keys].sort());
      expect(await two.tryAcquire(keys)).toBeNull();
      expect((await lab.leftovers()).length).toBe(keys.length);
    });
    await lab.nothingLeft();
  });
});

describe('any two different texts', () => {
  const nasty = fc.string({
    unit: fc.constantFrom(
      'a',
      'A',
      '\0',
      '\r\n',
      ' ',
      ':',
      '%',
      '*',
      '{a}',
      '"',
      "'",
      '\\',
      ']]',
      'é',
      'e\u0301',
    ),
    minLength: 1,
    maxLength: 4,
  });
  const text = fc.oneof(
    nasty,
    fc.string({ unit: 'grapheme', minLength: 1 }).filter((t) => !/[{}]/.test(t)),
  );

  it('are two locks', async () => {
    const [one, two] = [lab.open().locks, lab.open().locks];
    await fc.assert(
      fc.asyncProperty(text, text, async (a, b) => {
        fc.pre(a !== b);
        const [held, other] = [await one.acquire(a, { waitMs: 0 }), await two.acquire(b, { waitMs: 0 })];
        expect(await two.tryAcquire(a)).toBeNull();
        await Promise.all([held.release(), other.release()]);
      }),
      { numRuns: 200 },
    );
  });
});

describe('what is no key', () => {
  /** Every way in which a key gets into the library. */
  const allWays = (locks: LockService, key: string): (() => Promise<unknown>)[] => [
    () => locks.acquire(key),
    () => locks.acquire(['order', key]),
    () => locks.tryAcquire(key),
    () => locks.withLock(key, () => expect.fail('it ran')),
    () => locks.inspect(key),
    () => locks.isLocked(key),
    () => locks.forceUnlock(key),
  ];

  const requestCount = async () => {
    const { evalsha = 0, eval: inFull = 0 } = await lab.calls();
    return evalsha + inFull;
  };

  it.each(Object.entries(REFUSED_TEXTS))('%s: is refused before Redis hears of it', async (_, [key, why]) => {
    const { locks } = lab.open();
    await locks.ping();
    const before = await requestCount();
    for (const way of allWays(locks, key)) {
      const error: unknown = await way().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(LockKeyError);
      expect((error as LockKeyError).message).toMatch(why);
      expect((error as LockKeyError).message.length).toBeLessThan(300);
    }
    expect(await requestCount()).toBe(before);
    expect(await lab.leftovers()).toEqual([]);
  });

  it('braces that would put a lock and its channel into two slots cannot be taken', async () => {
    const { locks } = lab.open({ keyPrefix: '' });
    for (const key of REFUSED_BRACES) {
      expect(await codeOf(locks.acquire(key)), key).toBe('LOCK_KEY_INVALID');
      expect(await codeOf(locks.acquire(['order', key])), key).toBe('LOCK_KEY_INVALID');
    }
    await lab.nothingLeft();
  });
});

describe('without a keyPrefix, as Redisson names its locks,', () => {
  /** Where the fencing tokens of a key are. */
  const fenceOf = (key: string): string => `nest_redis_lock:fence:{${tagOfSlot(hashSlot(key))}}`;

  it.each([true, false])(
    'a lock cannot take the place of the fencing tokens of others (fencing: %s)',
    async (fencing) => {
      const one = lab.open({ keyPrefix: '', fencing });
      for (const key of [fenceOf('order'), 'nest_redis_lock:fence:{order}']) {
        expect(await codeOf(one.locks.acquire(key)), key).toBe('LOCK_KEY_INVALID');
        expect(await codeOf(one.locks.acquire(['a', key])), key).toBe('LOCK_KEY_INVALID');
      }
      await lab.open().locks.withLock('order', () => undefined);
      await lab.nothingLeft();
    },
  );

  it('two locks may be announced on one channel, but neither is the other', async () => {
    const [one, two] = [lab.open({ keyPrefix: '' }), lab.open({ keyPrefix: '', waitMs: 20_000 })];
    const [plain, braced] = [await one.locks.acquire('order'), await one.locks.acquire('{order}')];
    const waiting = [two.locks.acquire('order'), two.locks.acquire('{order}')] as const;
    await untilSubscribed('redisson_lock__channel:{order}');
    await plain.release();
    const next = await within(10_000, waiting[0]);
    // Its waiter has heard of the other one's end, looked, and gone on waiting.
    expect(await two.locks.inspect('{order}')).not.toBeNull();
    expect(two.locks.held()).toHaveLength(1);
    expect(await braced.release()).toBe('released');
    expect(await (await within(10_000, waiting[1])).release()).toBe('released');
    expect(await next.release()).toBe('released');
  });
});
