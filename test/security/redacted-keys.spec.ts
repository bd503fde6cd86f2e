import { describe, expect, it } from 'vitest';
import { currentLease, lockKey, withLocks, LockService } from 'nest-redis-lock';
import { fenceTransaction } from 'nest-redis-lock/fencing';
import { resolveSettings } from '../../lib/core/settings/lock-settings.js';
import { checkSqlKey } from '../../lib/stores/sql/sql-terms.js';
import { checkStoreKey } from '../../lib/stores/key-rule.js';
import { LockPaths } from '../../lib/stores/zookeeper/lock-path.js';
import { collectUnhandledRejections, until } from '../support/async.js';
import { watched } from '../support/core/core-under-test.js';
import { Lab, holdName } from '../support/redis/lab.js';
import { KEY, RedactedLocks, SECRET, SHOWN, redactKey, textsOf } from './support/redacted-locks.js';

const OTHER = `invoice:${SECRET}`;

/** Ways in which a key could be shown. Each has to show its redacted form. */
const SCENARIOS: Readonly<Record<string, (locks: RedactedLocks) => Promise<void>>> = {
  'a lock that is taken at once, and after a wait': async (one) => {
    await one.locks.acquire(KEY);
    await one.fails(() => one.locks.acquire(KEY, { waitMs: 0 }), 'LOCK_TAKEN');
    await one.fails(() => one.locks.acquire(KEY, { waitMs: 200 }), 'LOCK_TAKEN');
    const other = new RedactedLocks({}, one.space);
    await other.fails(() => other.locks.acquire(KEY, { waitMs: 0 }), 'LOCK_TAKEN');
    await other.fails(() => other.locks.acquire(KEY, { waitMs: 200 }), 'LOCK_TAKEN');
    await other.fails(() => other.locks.acquire(['a', KEY], { waitMs: 0 }), 'LOCK_TAKEN');
    one.saw(other.texts);
  },
  'permits that are taken, and a limit that changes': async (one) => {
    await one.locks.permits(KEY, { permits: 2 }).acquire();
    await one.locks.permits(KEY, { permits: 1 }).tryAcquire();
    await one.fails(() => one.locks.permits(KEY, { permits: 1 }).acquire({ waitMs: 100 }), 'LOCK_TAKEN');
    expect(one.log.lines.join()).toContain('callers pass different numbers');
  },
  'a full queue': async (one) => {
    const full = new RedactedLocks({ maxWaiters: 0 });
    await full.locks.acquire(KEY);
    await full.fails(() => full.locks.acquire(KEY), 'LOCK_QUEUE_FULL');
    await full.locks.acquire(KEY + 2, { mode: 'fair' });
    await full.fails(() => full.locks.acquire(KEY + 2, { mode: 'fair' }), 'LOCK_QUEUE_FULL');
    one.saw(full.texts);
  },
  'nested calls': async (one) => {
    const { locks } = one;
    await locks.withLock(KEY, async (outer) => {
      const once = { inside: outer, oncePerMs: 1_000 };
      await one.fails(() => locks.withLock(KEY, once, () => undefined), 'LOCK_NOT_REENTRANT');
      await one.fails(() => locks.acquire(KEY, { inside: outer, mode: 'read' }), 'LOCK_NOT_REENTRANT');
      await one.fails(() => locks.acquire(KEY, { waitMs: Infinity }), 'LOCK_NOT_REENTRANT');
      await one.fails(() => locks.acquire(KEY, { waitMs: 100 }), 'LOCK_TAKEN');
      await locks.withLock('b', () => undefined);
      const inner = await locks.acquire(KEY, { inside: outer });
      await one.fails(() => locks.acquire(KEY, { inside: outer, waitMs: 100 }), 'LOCK_TAKEN');
      await inner.release();
      await one.fails(() => currentLease(OTHER), 'LOCK_CONFIGURATION');
    });
    await one.fails(() => currentLease(OTHER), 'LOCK_CONFIGURATION');
    expect(one.log.lines.join()).toContain('is taken while');
    expect(one.log.lines.join()).toContain('asks for');
    const permits = locks.permits(KEY, { permits: 1 });
    await permits.withPermit(async (permit) => {
      await one.fails(() => permits.acquire({ waitMs: Infinity }), 'LOCK_NOT_REENTRANT');
      await one.fails(() => locks.acquire(KEY, { inside: permit }), 'LOCK_CONFIGURATION');
    });
  },
  'a lock that is lost': async (one) => {
    const { locks, runtime } = one;
    const expiring = await locks.acquire(KEY, { leaseMs: 100 });
    await runtime.pass(200);
    one.saw(expiring.loss, expiring.signal.reason);
    await one.fails(() => expiring.extend(100), 'LOCK_LOST');
    const refused = await locks.acquire(KEY);
    one.space.forceUnlock(`lock:${KEY}`);
    expect(await refused.verify()).toBe(false);
    one.saw(refused.loss);
    const forced = await locks.acquire(KEY);
    await locks.forceUnlock(KEY);
    one.saw(forced.loss);
    await one.fails(() => forced.run(() => undefined), 'LOCK_LOST');
    await locks.withLock(KEY, async (outer) => {
      const nested = await locks.acquire(KEY, { inside: outer });
      await outer.release();
      expect(nested.loss?.reason).toBe('outer-release');
      one.saw(nested.loss);
      await nested.release();
    });
    await one.fails(
      () => locks.withLock(KEY, { onLost: 'throw' }, () => locks.forceUnlock(KEY)),
      'LOCK_LOST',
    );
  },
  'a leader': async (one) => {
    const { locks } = one;
    const candidate = locks.lead(KEY, async ({ resign, signal }) => {
      resign();
      one.saw(signal.reason);
      throw new Error('no disk');
    });
    await one.fails(() => locks.lead(KEY, () => undefined), 'LOCK_CONFIGURATION');
    await one.runtime.pass(100);
    await candidate.stop();
    const failing = locks.lead(OTHER, ({ signal }) => {
      signal.addEventListener('abort', () => one.saw(signal.reason));
      throw new Error('no disk');
    });
    await one.runtime.pass(100);
    await failing.stop();
    expect(one.log.lines.join()).toContain('contends again');
  },
  'a caller that is aborted': async (one) => {
    const aborted = AbortSignal.abort('enough');
    await one.fails(() => one.locks.acquire(KEY, { signal: aborted }), 'LOCK_ABORTED');
    await one.fails(() => one.locks.acquire(['a', KEY], { signal: aborted }), 'LOCK_ABORTED');
    const abort = new AbortController();
    await one.locks.acquire(KEY);
    const waiting = watched(one.locks.acquire(KEY, { signal: abort.signal }));
    await one.runtime.pass(50);
    abort.abort();
    await one.runtime.pass(50);
    one.saw(waiting.error);
  },
  'the shutdown': async (one) => {
    const lease = await one.locks.acquire(KEY);
    const waiting = watched(one.locks.acquire(KEY));
    await one.runtime.pass(1);
    const closing = one.manager.shutDown();
    await one.runtime.pass(20_000);
    await closing;
    one.saw(lease.loss, waiting.error);
    await one.fails(() => one.locks.acquire(KEY), 'LOCK_SHUTDOWN');
    one.isDown = true;
    await one.fails(() => one.locks.semaphore(KEY).availablePermits(), 'LOCK_SHUTDOWN');
  },
  'a store that is down': async (one) => {
    const { locks } = one;
    const lease = await locks.acquire(KEY);
    const write = await locks.acquire(OTHER, { mode: 'write' });
    const waiting = watched(locks.acquire(KEY, { waitMs: 500 }));
    await one.runtime.pass(1);
    one.isDown = true;
    await one.runtime.pass(15_000);
    one.saw(waiting.error);
    for (const call of [
      () => locks.acquire('x' + KEY, { waitMs: 100 }),
      () => locks.acquire(KEY, { waitMs: 100 }),
      () => lease.extend(60_000),
      () => lease.verify(),
      () => write.downgrade(),
      () => locks.inspect(KEY),
      () => locks.forceUnlock(KEY),
      () => locks.revoke(KEY),
      () => locks.permits(KEY).inspect(),
      () => locks.semaphore(KEY).acquire(),
      () => locks.semaphore(KEY).release(),
      () => locks.countDownLatch(KEY).wait(),
      () => lease.release(),
    ])
      await one.fails(call, 'LOCK_STORE_FAILED');
    await write[Symbol.asyncDispose]();
    expect(one.log.lines.join()).toContain('The release is tried again');
  },
  'another thing under the name': async (one) => {
    const { locks } = one;
    await locks.semaphore(KEY).trySetPermits(1);
    await one.fails(() => locks.acquire(KEY), 'LOCK_STORE_FAILED');
    await locks.permits(OTHER, { permits: 1 }).acquire();
    await one.fails(() => locks.acquire(OTHER), 'LOCK_STORE_FAILED');
    await locks.acquire(`a:${KEY}`);
    await one.fails(() => locks.semaphore(`a:${KEY}`).acquire(), 'LOCK_STORE_FAILED');
  },
  'keys that are refused': async (one) => {
    const bare = new RedactedLocks({ keyPrefix: '' }, one.space);
    for (const key of [`a{b${KEY}`, `nest_redis_lock:${KEY}`, `redisson_lock_token:${KEY}`]) {
      await bare.fails(() => bare.locks.acquire(key), 'LOCK_KEY_INVALID');
      await bare.fails(() => bare.locks.acquire(['a', key]), 'LOCK_KEY_INVALID');
      await bare.fails(() => bare.locks.semaphore(key), 'LOCK_KEY_INVALID');
    }
    await bare.fails(() => bare.locks.acquire(`${KEY}\ud800`), 'LOCK_KEY_INVALID');
    await bare.fails(() => bare.locks.acquire(KEY.repeat(10_000)), 'LOCK_KEY_INVALID');
    await bare.fails(() => bare.locks.list({ prefix: `${KEY}\ud800` }), 'LOCK_CONFIGURATION');
    for (const id of [{ [SECRET]: SECRET }, [SECRET], `${SECRET}\ud800`])
      await bare.fails(() => lockKey('order:<<id>>', { id }), 'LOCK_KEY_INVALID');
    one.saw(bare.texts);
  },
  'slow waits and holds': async (one) => {
    const slow = new RedactedLocks({ slowWaitMs: 10, slowHoldMs: 10 });
    await slow.locks.acquire(KEY);
    await slow.fails(() => slow.locks.acquire(KEY, { waitMs: 300 }), 'LOCK_TAKEN');
    expect(slow.log.debugLines).toHaveLength(2);
    one.saw(slow.texts);
  },
  'semaphores and latches': async (one) => {
    const { locks } = new RedactedLocks({ maxWaiters: 0 }, one.space);
    await one.fails(() => one.locks.semaphore(KEY).acquire(1, { waitMs: 0 }), 'LOCK_TAKEN');
    void watched(locks.semaphore(KEY).acquire(1, { waitMs: 60_000 }));
    await one.runtime.pass(1);
    await one.fails(() => locks.semaphore(KEY).acquire(), 'LOCK_QUEUE_FULL');
    await locks.countDownLatch(OTHER).trySetCount(1);
    await one.fails(() => one.locks.countDownLatch(OTHER).wait({ waitMs: 100 }), 'LOCK_TAKEN');
  },
  'the methods of a lease': async (one) => {
    const { locks } = one;
    const lease = await locks.acquire([KEY, OTHER]);
    await one.fails(() => lease.fencingToken, 'LOCK_CONFIGURATION');
    await one.fails(() => lease.tokenFor(`another:${SECRET}`), 'LOCK_KEY_INVALID');
    await one.fails(() => lease.downgrade(), 'LOCK_CONFIGURATION');
    one.saw(JSON.stringify(lease), lease);
    expect([lease.key, lease.keys]).toEqual([OTHER, [OTHER, KEY]]);
    await lease.release();
    await one.fails(() => lease.extend(1), 'LOCK_CONFIGURATION');
    const reader = await locks.acquire(KEY, { mode: 'read' });
    await one.fails(() => reader.fencingToken, 'LOCK_CONFIGURATION');
    const permit = await locks.permits(OTHER, { permits: 1 }).acquire();
    await one.fails(() => permit.onRevocationRequested(() => undefined), 'LOCK_CONFIGURATION');
  },
  'several keys, and locks of several services': async (one) => {
    const { locks } = one;
    const key = { key: KEY, mode: 'read' } as const;
    await one.fails(() => locks.acquire([key, KEY]), 'LOCK_CONFIGURATION');
    await one.fails(() => locks.acquire([key, 'a'], { mode: 'fair' }), 'LOCK_CONFIGURATION');
    const part = { service: locks, ...key };
    const whole = { service: locks, key: KEY };
    await one.fails(() => withLocks([part, whole], () => undefined), 'LOCK_CONFIGURATION');
    await one.fails(() => withLocks([part], { mode: 'fair' }, () => undefined), 'LOCK_CONFIGURATION');
    await withLocks([whole], (lease) => one.fails(() => lease.of(locks, OTHER), 'LOCK_KEY_INVALID'));
  },
  'a request to release': async (one) => {
    const lease = await one.locks.acquire(KEY);
    lease.onRevocationRequested((event) => one.saw(event));
    expect(await one.locks.revoke(KEY)).toBe(true);
    await one.runtime.pass(1);
    expect(one.texts).toContain('revocation-requested');
  },
  'a fence that a later holder has raised': async (one) => {
    const lease = await one.locks.acquire(KEY);
    const late = (): never[] => [];
    await one.fails(() => fenceTransaction(late, lease, { dialect: 'postgres' }), 'LOCK_LOST');
  },
};

describe('with redactKey', () => {
  it.each(Object.entries(SCENARIOS))('%s: only the redacted key is shown', async (_, run) => {
    const one = new RedactedLocks();
    await run(one);
    expect(one.texts).not.toContain(SECRET);
    expect(one.texts).toMatch(/(?:order|invoice):<user>/);
  });

  it('values that the caller asks for have the real key', async () => {
    const { locks } = new RedactedLocks();
    const lease = await locks.acquire(KEY);
    expect([lease.key, ...lease.keys, locks.held()[0]?.key]).toEqual([KEY, KEY, KEY]);
    expect((await locks.list()).locks.map(({ key }) => key)).toEqual([KEY]);
    expect(await locks.isLocked(KEY)).toBe(true);
    expect([locks.semaphore(OTHER).key, locks.countDownLatch(OTHER).key]).toEqual([OTHER, OTHER]);
  });

  it('the hook gets the key without the prefix, and only where a key is shown', async () => {
    const keys: string[] = [];
    const settings = { redactKey: (key: string) => `${keys.push(key)}` };
    const one = new RedactedLocks(settings);
    // The test listens to all events.
    const silent = new LockService(one.manager);
    await (await silent.acquire(KEY)).release();
    expect(keys).toEqual([KEY, KEY]);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error(SECRET);
      },
    ],
    ['returns a promise that rejects', () => Promise.reject(new Error(SECRET))],
    ['returns an empty text', () => ''],
    ['returns a number', () => 4711],
    ['returns nothing', () => undefined],
    [
      'returns what cannot be read',
      () => ({
        get then() {
          throw new Error(SECRET);
        },
      }),
    ],
  ])('a hook that %s shows no key, and is reported once', async (_, hook) => {
    const unhandled = collectUnhandledRejections();
    const one = new RedactedLocks({ redactKey: hook as never });
    await one.locks.acquire(KEY);
    await one.fails(() => one.locks.acquire(KEY, { waitMs: 0 }), 'LOCK_TAKEN');
    await one.fails(() => one.locks.acquire(OTHER, { signal: AbortSignal.abort() }), 'LOCK_ABORTED');
    expect(one.texts).toContain('[redacted]');
    expect(one.texts).not.toContain(SECRET);
    expect(one.log.lines.filter((line) => line.startsWith('redactKey '))).toHaveLength(1);
    expect(await unhandled.finish()).toEqual([]);
  });

  it('an option that is no function is refused by name', () => {
    for (const wrong of ['***', null, {}])
      expect(() => resolveSettings({ redactKey: wrong as never })).toThrow(/^redactKey must be a function/);
  });

  it('a store that rejects a key by its name does not repeat it', () => {
    const fails = (): never => {
      throw new Error('no path');
    };
    for (const check of [
      () => checkStoreKey(`nest_redis_lock:${SECRET}`),
      () => checkStoreKey(`{${SECRET}`),
      () => checkSqlKey(`${SECRET}\0`),
      () => new LockPaths('', '/locks', fails).check(SECRET),
      () => new LockPaths('', '/locks', () => 5 as never).check(SECRET),
      () => new LockPaths('', '/locks', (key) => `/${key}/`).check(SECRET),
    ]) {
      let error: unknown;
      try {
        check();
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toMatchObject({ code: 'LOCK_KEY_INVALID', key: undefined });
      const own = textsOf(error)
        .join('\n')
        .replaceAll(import.meta.url, '');
      expect(own).not.toContain(SECRET);
    }
  });
});

describe('with redactKey, on Redis', () => {
  it('only the redacted key is shown', async () => {
    await using lab = await Lab.start();
    const [one, two] = [
      lab.open({ redactKey, watchdogMs: 1_000, commandTimeoutMs: 300 }),
      lab.open({ redactKey }),
    ];
    const errors: unknown[] = [];
    const fails = (call: Promise<unknown>) =>
      call.then(
        () => expect.unreachable(),
        (error) => errors.push(error),
      );
    const lease = await one.locks.acquire(KEY);
    await fails(two.locks.acquire(KEY, { waitMs: 30 }));
    await fails(two.locks.acquire(KEY, { waitMs: 0, mode: 'read' }));
    await lab.admin.del(holdName(KEY));
    await until(() => lease.lost);
    errors.push(lease.loss);
    await lab.admin.sadd(holdName(KEY), 'not ours');
    for (const { locks } of [one, two]) {
      await fails(locks.acquire(KEY));
      await fails(locks.acquire(KEY, { mode: 'fair' }));
      await fails(locks.acquire(KEY, { mode: 'write' }));
      await fails(locks.permits(KEY, { permits: 1 }).acquire());
      await fails(locks.semaphore(KEY).acquire());
      await fails(locks.countDownLatch(KEY).getCount());
      await fails(locks.inspect(KEY));
      await fails(locks.acquire(`a{b${KEY}`));
    }
    const held = await one.locks.acquire(OTHER);
    await lab.server.stop();
    await fails(held.release());
    await fails(one.locks.acquire(KEY, { waitMs: 100 }));
    const shown = [
      ...[one, two].flatMap(({ log }) => log),
      ...errors.flatMap(textsOf),
      ...[one, two].flatMap(({ events }) =>
        (['acquired', 'busy', 'lost', 'released', 'store-down'] as const).map((event) =>
          textsOf(events(event)),
        ),
      ),
    ].join('\n');
    expect(shown).not.toContain(SECRET);
    expect(shown).toContain(SHOWN);
  });
});
