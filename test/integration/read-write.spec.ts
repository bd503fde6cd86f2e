import { describe, expect, it } from 'vitest';
import type { LockNotAcquiredError } from 'nest-redis-lock';
import { deferred, until, within } from '../support/async.js';
import { holdName, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';

const lab = useLab();

/** Longer than a wake-up takes, and shorter than a retry: it shows which of the two came. */
const PROMPT_MS = 900;

const queueOf = (key: string): Promise<readonly string[]> =>
  lab
    .open()
    .locks.inspect(key)
    .then((state) => state?.waiting ?? []);

const untilQueued = (key: string, count: number): Promise<unknown> =>
  until(async () => (await queueOf(key)).length >= count, { what: `${count} stand in line for ${key}` });

describe('a read-write lock', () => {
  it('lets readers of several processes work at once, and a writer alone', async () => {
    const [a, b] = [lab.open(), lab.open()];
    const key = newKey();
    const [entered, inside] = [deferred(), deferred()];
    const first = a.locks.withLock(key, { mode: 'read' }, () => {
      entered.resolve();
      return inside.promise;
    });
    await entered.promise;
    await b.locks.withLock(key, { mode: 'read' }, () => Promise.resolve());
    expect(await b.locks.tryAcquire(key, { mode: 'write' })).toBeNull();
    const written = b.locks.withLock(key, { mode: 'write' }, async (lease) => {
      expect(lease.fencingToken).toBeGreaterThan(0);
      expect(await a.locks.tryAcquire(key, { mode: 'read' })).toBeNull();
      await expect(a.locks.acquire(key, { waitMs: 0 })).rejects.toMatchObject({
        code: 'LOCK_TAKEN',
        heldAs: 'write',
      });
      return 'written';
    });
    await untilQueued(key, 1);
    const freedAt = performance.now();
    inside.resolve();
    expect(await written).toBe('written');
    expect(performance.now() - freedAt).toBeLessThan(PROMPT_MS);
    await first;
    await lab.nothingLeft(a, b);
  });

  it('is renewed while it is held, by a reader or by a writer', async () => {
    const { locks } = lab.open(SHORT_WATCHDOG);
    const other = lab.open();
    for (const mode of ['read', 'write'] as const) {
      const key = newKey();
      await locks.withLock(key, { mode }, async (lease) => {
        await lab.renewals(5);
        expect(await lease.verify()).toBe(true);
        expect(lease.remainingMs()).toBeGreaterThan(0);
        expect(await other.locks.tryAcquire(key, { mode: 'write' })).toBeNull();
        expect(locks.held()).toMatchObject([{ key, kind: mode }]);
      });
    }
  });

  it('drops a killed reader at the end of its lease, whatever other readers do', async () => {
    const key = newKey();
    const [brief, writer] = [lab.open(), lab.open()];
    const victim = await lab.worker({ options: SHORT_WATCHDOG });
    victim.send({ type: 'acquire', id: 'r', keys: key, options: { mode: 'read' } });
    await victim.next('acquired');
    const lease = await brief.locks.acquire(key, { mode: 'read' });
    await victim.kill('SIGKILL');
    const killedAt = performance.now();
    await until(async () => (await brief.locks.inspect(key))!.holders.length === 1, {
      what: 'the dead reader has gone',
    });
    expect(performance.now() - killedAt).toBeLessThan(SHORT_WATCHDOG.watchdogMs + PROMPT_MS);
    const written = writer.locks.acquire(key, { mode: 'write' });
    await untilQueued(key, 1);
    const releasedAt = performance.now();
    await lease.release();
    await (await written).release();
    expect(performance.now() - releasedAt).toBeLessThan(PROMPT_MS);
    await lab.nothingLeft(brief, writer);
  });

  it('drops a killed writer at the end of its lease', async () => {
    const key = newKey();
    const reader = lab.open();
    const victim = await lab.worker({ options: SHORT_WATCHDOG });
    victim.send({ type: 'acquire', id: 'w', keys: key, options: { mode: 'write' } });
    await victim.next('acquired');
    const read = reader.locks.acquire(key, { mode: 'read' });
    await untilQueued(key, 1);
    await victim.kill('SIGKILL');
    const killedAt = performance.now();
    await (await read).release();
    expect(performance.now() - killedAt).toBeLessThan(SHORT_WATCHDOG.watchdogMs + PROMPT_MS);
  });

  it('tells a reader and a writer of a loss, at the next renewal', async () => {
    const { locks, events } = lab.open(SHORT_WATCHDOG);
    for (const mode of ['read', 'write'] as const) {
      const lease = await locks.acquire(newKey(), { mode });
      await lab.admin.del(holdName(lease.key));
      await until(() => lease.lost);
      expect(lease.loss?.message).toContain(`The ${mode} lock on`);
      expect(await lease.release()).toBe('lost');
      expect(events('lost').at(-1)).toMatchObject({ key: lease.key, reason: 'refused' });
    }
  });

  it('stays for holdAtLeastMs, and waits no longer than waitMs', async () => {
    const [a, b] = [lab.open(), lab.open()];
    for (const mode of ['read', 'write'] as const) {
      const key = newKey();
      await a.locks.withLock(key, { mode, holdAtLeastMs: 20_000 }, () => Promise.resolve());
      expect((await b.locks.inspect(key))?.holders[0]?.remainingMs).toBeGreaterThan(15_000);
      const waited = b.locks.acquire(key, { mode: 'write', waitMs: 100 });
      await expect(waited).rejects.toMatchObject({ code: 'LOCK_TAKEN', key });
      expect(await queueOf(key)).toEqual([]);
      expect(await b.locks.forceUnlock(key)).toBe(true);
      // As with Redisson, the key of the reader's lease expires: without a hash it keeps no caller out.
      const left = (await lab.leftovers()).filter((name) => name.includes(key));
      expect(left).toEqual(mode === 'read' ? [expect.stringMatching(/:rwlock_timeout:1$/)] : []);
      await (await b.locks.acquire(key, { mode: 'write', waitMs: 0 })).release();
    }
  });

  it('leaves the line when a wait is called off, and lets those in who stood behind', async () => {
    const [a, b, c] = [lab.open(), lab.open(), lab.open()];
    const key = newKey();
    const reading = await a.locks.acquire(key, { mode: 'read' });
    const caller = new AbortController();
    const written = b.locks.acquire(key, { mode: 'write', signal: caller.signal });
    await untilQueued(key, 1);
    const read = c.locks.acquire(key, { mode: 'read' });
    await untilQueued(key, 2);
    const abortedAt = performance.now();
    caller.abort();
    await expect(written).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await (await read).release();
    expect(performance.now() - abortedAt).toBeLessThan(PROMPT_MS);
    await reading.release();
    await lab.nothingLeft(a, b, c);
  });

  it('of a name that is a plain lock is taken, and its end is noticed within about a second', async () => {
    const [a, b] = [lab.open(), lab.open()];
    const key = newKey();
    const plain = await a.locks.acquire(key);
    const written = b.locks.acquire(key, { mode: 'write' });
    await untilQueued(key, 0);
    await until(async () => (await lab.admin.exists(`nest_redis_lock:rw_queue:{${holdName(key)}}`)) === 1);
    const releasedAt = performance.now();
    await plain.release();
    const lease = await written;
    expect(performance.now() - releasedAt).toBeLessThan(1_000 + PROMPT_MS);
    const again = a.locks.acquire(key);
    await lab.waiting(key);
    const freedAt = performance.now();
    await lease.release();
    await (await again).release();
    expect(performance.now() - freedAt).toBeLessThan(PROMPT_MS);
  });

  it.each([
    ['exclusive', {}],
    ['fair', { mode: 'fair' }],
  ] as const)(
    'of a name that is an %s lock is taken, and the error says as what',
    async (heldAs, options) => {
      const [a, b] = [lab.open(), lab.open()];
      const key = newKey();
      const lease = await a.locks.acquire(key, options);
      const before = await lab.admin.hgetall(holdName(key));
      for (const mode of ['read', 'write'] as const) {
        for (const waitMs of [0, 50]) {
          const requested = b.locks.acquire(key, { mode, waitMs });
          await expect(requested).rejects.toMatchObject({
            code: 'LOCK_TAKEN',
            heldAs,
            message: expect.stringContaining(` ${heldAs} lock, which is another kind`) as string,
          });
        }
      }
      expect(b.events('busy')).toHaveLength(4);
      for (const busy of b.events('busy')) expect(busy).toMatchObject({ heldAs });
      expect(await lab.admin.hgetall(holdName(key))).toEqual(before);
      expect(await lease.verify()).toBe(true);
      expect(await lease.release()).toBe('released');
      await lab.nothingLeft(a, b);
    },
  );

  it('names itself to whom it keeps out, for a plain lock and as what it is', async () => {
    const [a, b] = [lab.open(), lab.open()];
    for (const mode of ['read', 'write'] as const) {
      const key = newKey();
      const lease = await a.locks.acquire(key, { mode });
      for (const waitMs of [0, 50]) {
        await expect(b.locks.acquire(key, { waitMs })).rejects.toMatchObject({ heldAs: mode });
      }
      const write = b.locks.acquire(key, { mode: 'write', waitMs: 0 });
      await expect(write).rejects.not.toHaveProperty('heldAs');
      expect(await lease.release()).toBe('released');
    }
    await lab.nothingLeft(a, b);
  });
});

describe('a call inside another one of the same key', () => {
  it('reads inside a read lock or a write lock, and writes inside a write lock, without a request to Redis', async () => {
    const { locks } = lab.open();
    const key = newKey();
    for (const [outer, inner] of [
      ['read', 'read'],
      ['write', 'read'],
      ['write', 'write'],
    ] as const) {
      await locks.withLock(key, { mode: outer }, async (inside) => {
        const before = (await lab.calls())['evalsha'];
        await locks.withLock(key, { mode: inner, waitMs: 0, inside }, () => Promise.resolve());
        expect((await lab.calls())['evalsha']).toBe(before);
      });
    }
  });

  it('reads inside a read lock although a writer waits', async () => {
    const [a, b] = [lab.open(), lab.open()];
    const key = newKey();
    await a.locks.withLock(key, { mode: 'read' }, async (inside) => {
      const written = b.locks.acquire(key, { mode: 'write' });
      await untilQueued(key, 1);
      await a.locks.withLock(key, { mode: 'read', waitMs: 0, inside }, () => Promise.resolve());
      void written.then((lease) => lease.release());
    });
    await lab.nothingLeft(a, b);
  });

  it.each([
    ['read', 'write'],
    ['read', undefined],
    ['write', undefined],
    [undefined, 'read'],
    [undefined, 'write'],
  ] as const)(
    'is rejected at once where it is a self-deadlock: %s, and inside it %s',
    async (outer, inner) => {
      const { locks } = lab.open();
      const key = newKey();
      const nested = locks.withLock(key, { mode: outer }, (inside) =>
        locks.withLock(key, { mode: inner, waitMs: Infinity, inside }, () => 'ran'),
      );
      const error: LockNotAcquiredError = await within(5_000, nested).then(
        () => Promise.reject(new Error('it ran')),
        (refusal: LockNotAcquiredError) => refusal,
      );
      expect(error).toMatchObject({ code: 'LOCK_NOT_REENTRANT', key });
      expect(error.message).toContain('would wait for that');
      await expect(
        locks.withLock(key, { mode: outer }, (inside) =>
          locks.tryWithLock(key, { mode: inner, inside }, () => 'ran'),
        ),
      ).rejects.toMatchObject({ code: 'LOCK_NOT_REENTRANT' });
      await lab.nothingLeft();
    },
  );

  it('is rejected with the reason why a reader cannot write', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const nested = locks.withLock(key, { mode: 'read' }, (inside) =>
      locks.withLock(key, { mode: 'write', inside }, () => undefined),
    );
    await expect(nested).rejects.toThrow(/two readers that both want to write would wait for each other/);
  });
});

describe('a write lock that is downgraded', () => {
  it('admits readers, no writer before its end, and is renewed and released as a read lock', async () => {
    const [a, b, c] = [lab.open(SHORT_WATCHDOG), lab.open(), lab.open()];
    const key = newKey();
    const lease = await a.locks.acquire(key, { mode: 'write' });
    const read = b.locks.acquire(key, { mode: 'read' });
    await untilQueued(key, 1);
    const written = c.locks.acquire(key, { mode: 'write' });
    await untilQueued(key, 2);
    const downgradedAt = performance.now();
    await lease.downgrade();
    await (await read).release();
    expect(performance.now() - downgradedAt).toBeLessThan(PROMPT_MS);
    expect(a.locks.held()).toMatchObject([{ kind: 'read', fencingToken: undefined }]);
    expect(() => lease.fencingToken).toThrow('several may hold a read lock at once');
    await lab.renewals(4);
    expect(lease.lost).toBe(false);
    expect((await b.locks.inspect(key))?.waiting).toHaveLength(1);
    await expect(a.locks.acquire(key, { mode: 'write', inside: lease })).rejects.toMatchObject({
      code: 'LOCK_NOT_REENTRANT',
    });
    await lease.downgrade();
    expect(await lease.release()).toBe('released');
    await (await written).release();
    await lab.nothingLeft(a, b, c);
  });

  it('lets the next writer of its own process wait behind it, and have the lock after it', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const lease = await locks.acquire(key, { mode: 'write' });
    const next = locks.acquire(key, { mode: 'write' });
    await lease.downgrade();
    await untilQueued(key, 1);
    await lease.release();
    await (await next).release();
  });

  it('must be held and have no calls inside; any other lock is rejected', async () => {
    const { locks } = lab.open();
    const refusal = { code: 'LOCK_CONFIGURATION' };
    for (const mode of [undefined, 'read'] as const) {
      await using other = await locks.acquire(newKey(), { mode });
      await expect(other.downgrade()).rejects.toMatchObject(refusal);
    }
    const key = newKey();
    await locks.withLock(key, { mode: 'write' }, async (lease) => {
      await locks.withLock(key, { mode: 'write', inside: lease }, async (inner) => {
        await expect(inner.downgrade()).rejects.toThrow('downgrade the lease of that');
        await expect(lease.downgrade()).rejects.toThrow('nested calls are inside');
      });
      await lease.downgrade();
    });
    const over = await locks.acquire(key, { mode: 'write' });
    await over.release();
    await expect(over.downgrade()).rejects.toMatchObject(refusal);
  });
});

describe('readers of one process', () => {
  /** One reader's work, which takes a few round trips on a connection of its own. */
  const work = async (): Promise<void> => {
    for (let i = 0; i < 3; i += 1) await lab.admin.ping();
  };

  it('share what they can: 100 of them ask Redis at most once for 10 locks', async () => {
    const opened = lab.open();
    const { locks } = opened;
    const key = newKey();
    const rounds = 20;
    const requestCount = async (): Promise<number> => {
      const calls = await lab.calls();
      return (calls['evalsha'] ?? 0) + (calls['eval'] ?? 0);
    };
    const before = await requestCount();
    await Promise.all(
      Array.from({ length: 100 }, async () => {
        for (let round = 0; round < rounds; round += 1) await locks.withLock(key, { mode: 'read' }, work);
      }),
    );
    expect(opened.events('acquired')).toHaveLength(100 * rounds);
    expect(opened.events('released')).toHaveLength(100 * rounds);
    expect(((await requestCount()) - before) / (100 * rounds)).toBeLessThanOrEqual(0.1);
    await lab.nothingLeft(opened);
  });

  it('have a lease each: the release of one does not change the others', async () => {
    const opened = lab.open();
    const { locks } = opened;
    const key = newKey();
    const caller = new AbortController();
    const [one, two, three] = await Promise.all([
      locks.acquire(key, { mode: 'read' }),
      locks.acquire(key, { mode: 'read' }),
      locks.acquire(key, { mode: 'read', signal: caller.signal }),
    ]);
    expect(new Set([one.id, two.id, three.id]).size).toBe(3);
    expect(new Set([one.owner, two.owner, three.owner]).size).toBe(1);
    expect(locks.held()).toHaveLength(1);
    caller.abort();
    expect(await one.release()).toBe('released');
    expect(await one.release()).toBe('released');
    await expect(one.extend(1_000)).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION' });
    expect(one.remainingMs()).toBe(0);
    expect([two.lost, await two.verify(), await three.verify()]).toEqual([false, true, true]);
    expect(await lab.open().locks.tryAcquire(key, { mode: 'write' })).toBeNull();
    await two.release();
    expect(await three.verify()).toBe(true);
    await three.release();
    expect(opened.events('released')).toHaveLength(3);
    await lab.nothingLeft(opened);
  });

  it('are all notified when they lose their shared hold, except readers that have released', async () => {
    const opened = lab.open();
    const key = newKey();
    const leases = await Promise.all(
      Array.from({ length: 4 }, () => opened.locks.acquire(key, { mode: 'read' })),
    );
    await leases[0]!.release();
    const notifications: string[] = [];
    for (const { signal, id } of leases) signal.addEventListener('abort', () => notifications.push(id));
    expect(await opened.locks.forceUnlock(key)).toBe(true);
    expect(notifications).toEqual(leases.slice(1).map(({ id }) => id));
    expect(opened.events('lost')).toHaveLength(3);
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual([
      'released',
      'lost',
      'lost',
      'lost',
    ]);
    await lab.nothingLeft(opened);
  });

  it('share nothing with a fixed lease, a minimum time or another watchdog', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const shared = { mode: 'read' } as const;
    const leases = await Promise.all(
      [
        shared,
        { ...shared, leaseMs: 20_000 },
        { ...shared, holdAtLeastMs: 10 },
        { ...shared, watchdogMs: 5_000 },
        shared,
      ].map((options) => locks.acquire(key, options)),
    );
    expect(leases[4]!.owner).toBe(leases[0]!.owner);
    expect(new Set(leases.map(({ owner }) => owner)).size).toBe(4);
    await Promise.all(leases.map((lease) => lease.release()));
  });

  it('that come after the hand-off batch send a request, and queue behind a waiting writer', async () => {
    const [a, b] = [lab.open(), lab.open()];
    const key = newKey();
    const first = await a.locks.acquire(key, { mode: 'read' });
    const written = b.locks.acquire(key, { mode: 'write' });
    await untilQueued(key, 1);
    await until(async () => {
      const late = await a.locks.tryAcquire(key, { mode: 'read' });
      await late?.release();
      return late === null;
    });
    expect(await first.verify()).toBe(true);
    await first.release();
    await (await written).release();
    await lab.nothingLeft(a, b);
  });
});

describe('no caller starves', () => {
  it('a writer gets the lock although readers of other processes keep coming, and readers although writers do', async () => {
    const key = newKey();
    const services = [lab.open(), lab.open(), lab.open(), lab.open()];
    const end = deferred();
    const counts = { read: 0, write: 0 };
    let isOver = false;
    void end.promise.then(() => (isOver = true));
    const inside = { read: 0, write: 0 };
    const goOn = async (i: number, mode: 'read' | 'write', workMs: number): Promise<void> => {
      const { locks } = services[i % services.length]!;
      while (!isOver) {
        await locks.withLock(key, { mode, waitMs: Infinity }, async () => {
          inside[mode] += 1;
          expect(inside.write === 0 || (inside.write === 1 && inside.read === 0)).toBe(true);
          for (let i = 0; i < workMs; i += 1) await locks.ping();
          inside[mode] -= 1;
          counts[mode] += 1;
        });
      }
    };
    // There are always readers inside, and always writers and readers that wait.
    const all = [
      ...Array.from({ length: 24 }, (_, i) => goOn(i, 'read', 5 + (i % 7))),
      ...Array.from({ length: 6 }, (_, i) => goOn(i, 'write', 3)),
    ];
    await until(() => counts.read >= 200 && counts.write >= 50, { timeoutMs: 30_000 });
    end.resolve();
    await Promise.all(all);
    await lab.nothingLeft(...services);
  });

  it('a writer in a process of readers comes in although these go on coming', async () => {
    const { locks } = lab.open();
    const key = newKey();
    let isOver = false;
    let read = 0;
    const readers = Array.from({ length: 20 }, async (_, i) => {
      while (!isOver) {
        await locks.withLock(key, { mode: 'read', waitMs: Infinity }, async () => {
          for (let n = 0; n < 2 + (i % 5); n += 1) await locks.ping();
        });
        read += 1;
      }
    });
    await until(() => read > 50);
    for (let i = 0; i < 5; i += 1) {
      await within(
        5_000,
        locks.withLock(key, { mode: 'write' }, () => Promise.resolve()),
      );
    }
    isOver = true;
    await Promise.all(readers);
  });
});
