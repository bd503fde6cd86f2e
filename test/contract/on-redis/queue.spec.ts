import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  QUEUE_ACQUIRE,
  QUEUE_FORCE_UNLOCK,
  QUEUE_KEEP,
  QUEUE_RELEASE,
} from '../../../lib/stores/redis/kinds/exclusive/queue-scripts.js';
import { until } from '../../support/async.js';
import { newKey } from '../../support/stores/harness.js';
import { redisHarness, type RedisHarness } from '../../support/stores/redis.harness.js';

const PREFIX = 'nest_redis_lock:grant:';
const ALIVE_MS = 5_000;
const PROVISIONAL_MS = 10_000;
const LEASE_MS = 30_000;
/** Fields of a line that are no places. */
const HEADER = 5;

let owners = 0;
/** The name of a process of this library, by one letter. */
const processOf = (letter: string): string => `${letter.repeat(8)}-0000-8000-8000-000000000000`;
const newOwner = (process: string): string => `${processOf(process)}:${++owners}`;

/** What `eval` takes. */
type Run = [script: string, keys: number, ...rest: (string | number)[]];

/** Has a line that is there leave its lock to those who only poll only in a second. */
const POLLED_JUST_NOW = `
if redis.call('exists', KEYS[1]) == 0 then return end
local now = redis.call('time')
-- Not where the memory is full.
redis.pcall('hset', KEYS[1], 'polled', string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000)))
`;

interface RequestOptions {
  readonly waits?: boolean;
  readonly tokens?: number;
  readonly notSubscribed?: boolean;
  readonly aliveMs?: number;
}

/** What the scripts of the line promise, one by one, on a real server. */
describe('the line of an exclusive lock in Redis', () => {
  let harness: RedisHarness;
  let admin: Redis;
  let subscriber: Redis;
  const notifications: string[] = [];

  beforeAll(async () => {
    harness = await redisHarness();
    admin = harness.admin;
    subscriber = admin.duplicate();
    subscriber.on('message', (_channel: string, message: string) => notifications.push(message));
    await subscriber.subscribe(...['a', 'b', 'c', 'd'].map((process) => PREFIX + processOf(process)));
  });

  afterEach(async () => {
    notifications.length = 0;
    await admin.flushall();
  });

  afterAll(async () => {
    subscriber.disconnect();
    await harness.cleanup();
  });

  const keysOf = (key: string): [string, string, string] => [
    key,
    'nest_redis_lock:fence:{7}',
    `nest_redis_lock:queue:{${key}}`,
  ];
  const channelOf = (key: string): string => `redisson_lock__channel:{${key}}`;

  const acquiring = (key: string, owner: string, options: RequestOptions = {}): Run => {
    const { waits = true, tokens = 1, notSubscribed = false, aliveMs = ALIVE_MS } = options;
    const entryTerms = waits ? `${aliveMs} ${PROVISIONAL_MS} ${tokens} ${notSubscribed ? 1 : 0}` : '';
    return [QUEUE_ACQUIRE, 3, ...keysOf(key), owner, LEASE_MS, tokens, entryTerms, 'PUBLISH'];
  };
  const releasing = (key: string, owner: string): Run => [
    QUEUE_RELEASE,
    3,
    ...keysOf(key),
    owner,
    'PUBLISH',
    0,
  ];
  const keeping = (key: string, owner: string, notSubscribed = 0): Run => [
    QUEUE_KEEP,
    3,
    ...keysOf(key),
    owner,
    ALIVE_MS,
    notSubscribed,
  ];
  const acquire = (key: string, owner: string, options: RequestOptions = {}): Promise<unknown> =>
    admin.eval(...acquiring(key, owner, options));
  /** However long the test has taken until now, this is not the moment for those who only poll. */
  const release = async (key: string, owner: string): Promise<unknown> => {
    const polled = admin.eval(POLLED_JUST_NOW, 1, keysOf(key)[2]);
    const [reply] = await Promise.all([admin.eval(...releasing(key, owner)), polled]);
    return reply;
  };
  const keep = (key: string, owner: string, notSubscribed = 0): Promise<unknown> =>
    admin.eval(...keeping(key, owner, notSubscribed));
  /** Runs one behind the other without a moment in between, and has the server say the time before and after. */
  const atOnce = async (...runs: readonly Run[]) => {
    const multi = admin.multi().time();
    for (const run of runs) multi.eval(...run);
    const replies = (await multi.time().exec())!.map(([failure, reply]) => {
      if (failure) throw failure;
      return reply;
    });
    const inMs = (at: number): number => {
      const [seconds, microseconds] = replies.at(at) as [number, number];
      return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
    };
    return { replies: replies.slice(1, -1), before: inMs(0), after: inMs(-1) };
  };
  const force = (key: string): Promise<unknown> =>
    admin.eval(QUEUE_FORCE_UNLOCK, 3, ...keysOf(key), 'PUBLISH');
  const holderOf = async (key: string): Promise<string | undefined> =>
    Object.keys(await admin.hgetall(key))[0];
  const queueOf = (key: string): Promise<Record<string, string>> => admin.hgetall(keysOf(key)[2]);
  const untilNotified = (count: number): Promise<unknown> => until(() => notifications.length >= count);

  it('does not exist without a waiter', async () => {
    const key = newKey();
    const owner = newOwner('a');
    expect(await acquire(key, owner)).toMatch(/^\d{16}$/);
    expect(await queueOf(key)).toEqual({});
    expect(await release(key, owner)).toBe(0);
    expect(await admin.keys('lock*')).toEqual([]);
  });

  it('is served in the order in which its waiters came, by the release, with a message', async () => {
    const key = newKey();
    const all = ['a', 'b', 'c', 'd'].map(newOwner);
    expect(await acquire(key, all[0]!)).toMatch(/^\d+$/);
    for (const [before, owner] of all.slice(1).entries()) {
      expect(await acquire(key, owner)).toMatch(new RegExp(`^q ${before + 1} ${before} \\d+$`));
    }
    let token = 0;
    for (const [i, owner] of all.slice(0, -1).entries()) {
      expect(await release(key, owner)).toBe(0);
      await untilNotified(i + 1);
      const [words = '', hold] = notifications[i]!.split('\n');
      const [word, version, to, first, tokens, lease, left] = words.split(' ');
      expect([word, version, to, tokens, lease, left, hold]).toEqual([
        'grant', '1', all[i + 1], '1', `${PROVISIONAL_MS}`, `${2 - i}`, key,
      ]); // prettier-ignore
      expect(Number(first)).toBeGreaterThan(token);
      token = Number(first);
      expect(await holderOf(key)).toBe(all[i + 1]);
      const ttl = await admin.pttl(key);
      expect(ttl).toBeGreaterThan(PROVISIONAL_MS - 2_000);
      expect(ttl).toBeLessThanOrEqual(PROVISIONAL_MS);
    }
    expect(await queueOf(key)).toEqual({});
    expect(await release(key, all[3]!)).toBe(0);
    expect(await admin.exists(key)).toBe(0);
  });

  it('always has a time to live', async () => {
    const key = newKey();
    await acquire(key, newOwner('a'));
    const waiter = newOwner('b');
    await acquire(key, waiter);
    for (let i = 0; i < 2; i++) {
      const ttl = await admin.pttl(keysOf(key)[2]);
      expect(ttl).toBeGreaterThan(ALIVE_MS - 2_000);
      expect(ttl).toBeLessThanOrEqual(ALIVE_MS);
      expect(await keep(key, waiter)).toEqual([expect.stringMatching(/^q 0 \d+$/)]);
    }
  });

  it('is not overtaken by one that only tries, nor by one that comes while the lock is free', async () => {
    const key = newKey();
    const [holder, waiter, late] = ['a', 'b', 'c'].map(newOwner) as [string, string, string];
    await acquire(key, holder);
    await acquire(key, waiter);
    expect(await acquire(key, newOwner('d'), { waits: false })).toBeGreaterThan(0);
    await admin.del(key);
    expect(await acquire(key, late)).toMatch(/^q 2 /);
    expect(await holderOf(key)).toBe(waiter);
    await untilNotified(1);
  });

  it('passes over a process that does not hear, and keeps its place', async () => {
    const key = newKey();
    const [holder, away, waiter] = [newOwner('a'), newOwner('away'), newOwner('b')];
    await acquire(key, holder);
    await acquire(key, away);
    await acquire(key, waiter);
    await release(key, holder);
    expect(await holderOf(key)).toBe(waiter);
    expect(Object.keys(await queueOf(key))).toContain(`@${away}`);
    await release(key, waiter);
    expect(await admin.exists(key)).toBe(0);
    expect(await keep(key, away)).toEqual([`h ${PROVISIONAL_MS}`]);
  });

  it('grants to a deaf place without a message, which finds it when it is kept', async () => {
    const key = newKey();
    const [holder, notSubscribed] = [newOwner('a'), newOwner('away')];
    await acquire(key, holder);
    await acquire(key, notSubscribed, { notSubscribed: true });
    await release(key, holder);
    expect(await holderOf(key)).toBe(notSubscribed);
    expect(notifications).toEqual([]);
    expect(await keep(key, notSubscribed)).toEqual([expect.stringMatching(/^h \d+$/)]);
  });

  it('drops a place that is not kept, and never makes it again', async () => {
    const key = newKey();
    const [holder, dead, waiter] = [newOwner('a'), newOwner('b'), newOwner('c')];
    await acquire(key, holder);
    await acquire(key, dead, { aliveMs: 50 });
    await acquire(key, waiter);
    await harness.pass(50);
    await release(key, holder);
    expect(await holderOf(key)).toBe(waiter);
    expect(await keep(key, dead)).toEqual(['gone']);
    expect(await queueOf(key)).toEqual({});
  });

  it('is left by a release of one that still stands in it', async () => {
    const key = newKey();
    const [holder, leaver, waiter] = [newOwner('a'), newOwner('b'), newOwner('c')];
    await acquire(key, holder);
    await acquire(key, leaver);
    await acquire(key, waiter);
    expect(await release(key, leaver)).toBe(1);
    expect(await release(key, leaver)).toBe(-1);
    expect(await keep(key, leaver)).toEqual(['gone']);
    await release(key, holder);
    expect(await holderOf(key)).toBe(waiter);
  });

  /** A foreign waiter that waits for the notification as Redisson does. */
  const listening = async (key: string, connections: number): Promise<() => void> => {
    const others = Array.from({ length: connections }, () => admin.duplicate());
    for (const other of others) await other.subscribe(channelOf(key));
    return () => others.forEach((other) => other.disconnect());
  };
  const kept = (key: string, owner: string): Promise<string> =>
    until(async () => {
      const [reply] = (await keep(key, owner)) as [string];
      return reply.startsWith('h ') ? reply : undefined;
    });

  it('is passed over for a moment if there are more listeners than entries: the first caller gets the lock', async () => {
    const key = newKey();
    const [holder, waiter, foreign] = [newOwner('a'), newOwner('b'), newOwner('java')];
    await acquire(key, holder);
    await acquire(key, waiter);
    const stop = await listening(key, 2);
    await admin.hincrby(keysOf(key)[2], 'since', -30);
    const since = Number((await queueOf(key))['since']);
    const { replies, before, after } = await atOnce(
      releasing(key, holder),
      keeping(key, waiter),
      // A queued claim is not overtaken by one of ours, only by a foreign one without a wait queue.
      acquiring(key, foreign, { waits: false }),
    );
    expect(replies).toEqual([0, [expect.stringMatching(/^q 0 \d+$/)], expect.any(Number)]);
    // For as long as the line had it, 50 ms at most. So much of it is left.
    const left = Number(String(replies[1]).split(' ')[2]);
    expect(left).toBeGreaterThanOrEqual(Math.min(50, before - since) - (after - before));
    expect(left).toBeLessThanOrEqual(Math.min(50, after - since));
    expect(await kept(key, waiter)).toBe(`h ${PROVISIONAL_MS}`);
    stop();
  });

  it('is begun by a release that others listen to: the next one of the process does not take the lock at once', async () => {
    const key = newKey();
    const [holder, next] = [newOwner('a'), newOwner('a')];
    await acquire(key, holder);
    const stop = await listening(key, 1);
    const { replies } = await atOnce(releasing(key, holder), acquiring(key, next));
    expect(replies).toEqual([0, expect.stringMatching(/^q 1 0 [1-3]$/)]);
    expect(await kept(key, next)).toBe(`h ${PROVISIONAL_MS}`);
    // A subscriber by pattern does not count as a waiter.
    stop();
    const watcher = admin.duplicate();
    await watcher.psubscribe('*');
    await release(key, next);
    expect(await queueOf(key)).toEqual({});
    watcher.disconnect();
  });

  it('gets the lock at once again when no other client listens any more', async () => {
    const key = newKey();
    const [holder, waiter] = [newOwner('a'), newOwner('b')];
    await acquire(key, holder);
    await acquire(key, waiter);
    const stop = await listening(key, 2);
    await admin.hincrby(keysOf(key)[2], 'since', -1_000);
    await release(key, holder);
    stop();
    const stopOurs = await listening(key, 1);
    expect(await kept(key, waiter)).toBe(`h ${PROVISIONAL_MS}`);
    expect(Number((await queueOf(key))['since'])).toBeLessThanOrEqual(Date.now());
    stopOurs();
  });

  it('has for itself what others have had beyond their moment, before it leaves them the lock again', async () => {
    const key = newKey();
    const waiters = ['a', 'b', 'c', 'd'].map(newOwner);
    const [holder, second, third] = waiters as [string, string, string];
    for (const one of waiters) await acquire(key, one);
    const stop = await listening(key, 4);
    await release(key, holder);
    await admin.hincrby(keysOf(key)[2], 'yield', -150);
    const { replies } = await atOnce(keeping(key, second), releasing(key, second));
    expect(replies).toEqual([[`h ${PROVISIONAL_MS}`], 0]);
    expect(await holderOf(key)).toBe(third);
    await admin.hincrby(keysOf(key)[2], 'since', -300);
    await release(key, third);
    expect(await holderOf(key)).toBeUndefined();
    stop();
  });

  it('leaves the lock to those who only poll, once a second of turns without a pause', async () => {
    const key = newKey();
    const [holder, second, third] = ['a', 'b', 'c'].map(newOwner) as [string, string, string];
    await acquire(key, holder);
    await acquire(key, second);
    await acquire(key, third);
    await admin.hincrby(keysOf(key)[2], 'polled', -1_000);
    const { replies } = await atOnce(releasing(key, holder), keeping(key, second));
    expect(replies).toEqual([0, [expect.stringMatching(/^q 0 ([1-9]|[1-4]\d)$/)]]);
    expect(await kept(key, second)).toBe(`h ${PROVISIONAL_MS}`);
    await release(key, second);
    expect(await holderOf(key)).toBe(third);
  });

  it('retries soon if the holder is a polling one: the end of its hold is not announced', async () => {
    const key = newKey();
    const [holder, waiter] = [newOwner('a'), newOwner('b')];
    await acquire(key, holder);
    await acquire(key, waiter);
    await admin.hincrby(keysOf(key)[2], 'polled', -1_000);
    await admin.eval(...releasing(key, holder));
    await admin.hset(key, 'java:1', 1);
    await admin.pexpire(key, LEASE_MS);
    const soon = await until(async () => {
      const [reply] = (await keep(key, waiter)) as [string];
      return Number(reply.split(' ')[2]) < LEASE_MS / 2 && reply;
    });
    expect(soon).toMatch(/^q 0 \d{2} other$/);
    await admin.del(key);
    expect(await keep(key, waiter)).toEqual([`h ${PROVISIONAL_MS}`]);
  });

  it('is served after a forced unlock, and by a refresh of any entry when a hold has expired', async () => {
    const key = newKey();
    const [holder, second, third] = ['a', 'b', 'c'].map(newOwner) as [string, string, string];
    await acquire(key, holder);
    await acquire(key, second);
    await acquire(key, third);
    expect(await force(key)).toBe(1);
    expect(await holderOf(key)).toBe(second);
    await admin.del(key);
    expect(await keep(key, third)).toEqual([`h ${PROVISIONAL_MS}`]);
  });

  it('grants an entry of a later version in its order, and removes it when it has expired', async () => {
    const key = newKey();
    const [holder, waiter, last] = ['a', 'b', 'c'].map(newOwner) as [string, string, string];
    for (const owner of [holder, waiter, last]) await acquire(key, owner);
    const ofLaterVersion = async (ticket: number): Promise<string> => {
      const text = (await queueOf(key))[ticket]!.replace(/^1 (.*)$/, '2 $1 and more');
      await admin.hset(keysOf(key)[2], ticket, text);
      return text;
    };
    await ofLaterVersion(1);
    await release(key, holder);
    expect(await holderOf(key)).toBe(waiter);
    const [, aliveUntil = ''] = (await ofLaterVersion(2)).split(' ');
    await admin.hset(keysOf(key)[2], 2, (await queueOf(key))[2]!.replace(aliveUntil, '1'));
    await acquire(key, newOwner('d'));
    expect(Object.values(await queueOf(key))).not.toContainEqual(expect.stringMatching(/^2 /));
  });

  it('is not in the way of a release when the memory is full', async () => {
    const key = newKey();
    const [holder, waiter] = [newOwner('a'), newOwner('b')];
    await acquire(key, holder);
    await acquire(key, waiter);
    await admin.config('SET', 'maxmemory', 1);
    try {
      expect(await keep(key, waiter)).toEqual([expect.stringMatching(/^q 0 \d+$/)]);
      expect(await release(key, holder)).toBe(0);
      expect(await holderOf(key)).toBe(waiter);
    } finally {
      await admin.config('SET', 'maxmemory', 0);
    }
  });

  it('gives who has been granted without a message its tokens when the memory is full, too', async () => {
    const key = newKey();
    const [one, two] = [newOwner('a'), newOwner('b')];
    await acquire(key, one);
    await acquire(key, two, { notSubscribed: true });
    await admin.config('SET', 'maxmemory', 1);
    try {
      expect(await release(key, one)).toBe(0);
      expect(await admin.hkeys(key)).toEqual([two]);
      expect(await acquire(key, two)).toMatch(/^\d+$/);
      expect(await admin.pttl(key)).toBeGreaterThan(PROVISIONAL_MS);
    } finally {
      await admin.config('SET', 'maxmemory', 0);
    }
  });

  it('whose place something else has taken is not in the way of a release', async () => {
    const key = newKey();
    const holder = newOwner('a');
    await acquire(key, holder);
    await admin.set(keysOf(key)[2], 'something else');
    const subscriber = admin.duplicate();
    await subscriber.subscribe(channelOf(key));
    const announced = new Promise((resolve) => subscriber.once('message', resolve));
    expect(await release(key, holder)).toBe(0);
    await announced;
    expect(await admin.exists(key)).toBe(0);
    expect(await admin.get(keysOf(key)[2])).toBe('something else');
    expect(await force(key)).toBe(0);
    subscriber.disconnect();
  });

  it('passes over who wants a token where none can be given, and tells it when it asks', async () => {
    const key = newKey();
    const [holder, fenced, unfenced] = ['a', 'b', 'c'].map(newOwner) as [string, string, string];
    await acquire(key, holder);
    await acquire(key, fenced);
    await acquire(key, unfenced, { tokens: 0 });
    await admin.set(keysOf(key)[1], 'no number');
    expect(await release(key, holder)).toBe(0);
    expect(await holderOf(key)).toBe(unfenced);
    expect(await release(key, unfenced)).toBe(0);
    expect(await admin.exists(key)).toBe(0);
    expect(await keep(key, fenced)).toEqual([expect.stringMatching(/^error FENCE /)]);
    await expect(acquire(key, newOwner('d'))).rejects.toThrow('FENCE');
    // The rejected claim has no entry any more.
    expect(await admin.hlen(keysOf(key)[2])).toBe(HEADER + 2);
    expect(await admin.exists(key)).toBe(0);
  });

  it.each([
    ['that cannot be read', (_owner: string) => 'no entry', () => null],
    [
      'with a lease that Redis refuses',
      (owner: string) => `1 ${'9'.repeat(30)} ${'9'.repeat(30)} ${'9'.repeat(20)} 1 0 ${owner}`,
      () => null,
    ],
    [
      'of another clock',
      (owner: string) => `1 ${Date.now() + 3_600_000} ${ALIVE_MS} ${PROVISIONAL_MS} 1 1 ${owner} later`,
      (owner: string) => new RegExp(`^1 \\d+ ${ALIVE_MS} ${PROVISIONAL_MS} 1 1 ${owner} later$`),
    ],
  ])(
    'an entry %s does not stop the queue, however many entries came and went since',
    async (_which, textOf, left) => {
      const key = newKey();
      const queue = keysOf(key)[2];
      const owner = newOwner('away');
      const polled = Date.now();
      await acquire(key, newOwner('a'));
      await admin.hset(queue, {
        last: 100,
        head: 1,
        polled,
        yield: 0,
        since: polled,
        1: textOf(owner),
        [`@${owner}`]: 1,
      });
      await admin.pexpire(queue, 60_000);
      const waiter = newOwner('b');
      await acquire(key, waiter);
      const text = await admin.hget(queue, '1');
      if (left(owner)) expect(text).toMatch(left(owner)!);
      else expect(text).toBeNull();
      // It has the time to live that its owner gave it, from now on.
      if (text) expect(Number(text.split(' ')[1])).toBeLessThanOrEqual(Date.now() + ALIVE_MS);
      if (text) await admin.hset(queue, '1', text.replace(/ \d+/, ' 1'));
      await acquire(key, newOwner('c'));
      await release(key, (await holderOf(key))!);
      expect(await holderOf(key)).toBe(waiter);
      expect(await admin.hget(queue, 'head')).not.toBe('1');
    },
  );

  it('the owner of an entry that cannot be read gets the reply that it is gone', async () => {
    const key = newKey();
    const waiter = newOwner('b');
    await acquire(key, newOwner('a'));
    await acquire(key, waiter);
    await admin.hset(keysOf(key)[2], '1', 'no entry');
    expect(await keep(key, waiter)).toEqual(['gone']);
  });

  it('a queue whose header holds no numbers grants its lock', async () => {
    const key = newKey();
    const [holder, waiter] = [newOwner('a'), newOwner('b')];
    await acquire(key, holder);
    await admin.hset(keysOf(key)[2], { last: 'x', head: 'x', polled: 'x', yield: 'x', since: 'x' });
    expect(await acquire(key, waiter)).toMatch(/^q 1 0 /);
    await release(key, holder);
    expect(await holderOf(key)).toBe(waiter);
  });
});
