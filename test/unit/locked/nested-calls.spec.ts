// lease.call, and the option `inside` of LockService: which calls they take, and what each way to return a result makes of
// the proof. What holds for every nested call is in test/unit/core/section.spec.ts.
import 'reflect-metadata';
import { Readable } from 'node:stream';
import { lastValueFrom, Observable, of, toArray } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  currentLease,
  Limited,
  Locked,
  LockConfigurationError,
  LockLostError,
  withLocks,
  type Lease,
  type LockService,
} from 'nest-redis-lock';
import { deferred } from '../../support/async.js';
import { isIdle, lockedInstance } from './fixture.js';

const UNREAD_MS = 30_000;

/** Another decorator that wraps a method. */
const Traced: MethodDecorator = (_target, _name, descriptor: PropertyDescriptor): void => {
  const original = descriptor.value as (...args: unknown[]) => unknown;
  descriptor.value = function (this: unknown, ...args: unknown[]): unknown {
    return original.apply(this, args);
  };
};

class Wallet {
  @Locked('wallet:<<id>>')
  async check(id: string): Promise<number> {
    return currentLease(`wallet:${id}`).fencingToken;
  }

  /** Its caller proves that it is inside the lock, and it passes its own lease on. */
  @Locked('wallet:<<id>>')
  async audit(id: string): Promise<number> {
    const lease = currentLease();
    return lease.call(this, this.check, id);
  }

  @Locked(['wallet:<<from>>', 'wallet:<<to>>'])
  async move(from: string, to: string): Promise<readonly string[]> {
    const { keys } = currentLease();
    return [from, to].filter((id) => keys.includes(`wallet:${id}`));
  }

  @Locked('wallet:<<id>>', { mode: 'read' })
  async balance(id: string): Promise<string> {
    return id;
  }

  @Locked('wallet:<<id>>', { oncePerMs: 60_000 })
  async bonus(id: string): Promise<string> {
    return id;
  }

  @Locked('wallet:<<id>>')
  @Limited('bank', { permits: 1 })
  async transfer(id: string): Promise<string> {
    return id;
  }

  @Locked('wallet:<<id>>')
  @Locked('branch:<<id>>')
  async close(id: string): Promise<readonly string[]> {
    return [`wallet:${id}`, `branch:${id}`].filter((key) => currentLease(key).remainingMs() > 0);
  }

  @Limited('bank', { permits: 2 })
  async limited(id: string): Promise<string> {
    return id;
  }

  @Traced
  @Locked('wallet:<<id>>')
  async traced(id: string): Promise<string> {
    return id;
  }

  async plain(id: string): Promise<string> {
    return id;
  }
}

class Savings extends Wallet {
  override async check(id: string): Promise<number> {
    return super.check(id);
  }

  @Locked('wallet:<<id>>')
  override async audit(id: string): Promise<number> {
    return currentLease().call(this, super.check, id);
  }
}

class Other {
  @Locked('wallet:<<id>>')
  async check(id: string): Promise<string> {
    return id;
  }
}

let wallet: Wallet;
let locks: LockService;
/** Keys that were acquired from the store. */
let acquired: string[];
beforeEach(() => {
  ({ instance: wallet, locks } = lockedInstance(Wallet));
  acquired = [];
  locks.on('acquired', ({ key }) => acquired.push(key));
});

describe('lease.call', () => {
  it('enters the lock of its lease, also through several calls: one grant, one token', async () => {
    const tokens = await locks.withLock('wallet:a', async (lease) => [
      lease.fencingToken,
      await lease.call(wallet, wallet.check, 'a'),
      await lease.call(wallet, wallet.audit, 'a'),
    ]);
    expect(new Set(tokens).size).toBe(1);
    expect(acquired).toEqual(['wallet:a']);
    expect(isIdle(locks)).toBe(true);
  });

  it('with several keys enters the held one, and acquires the others', async () => {
    const keys = await locks.withLock('wallet:b', (lease) => lease.call(wallet, wallet.move, 'a', 'b'));
    expect(keys).toEqual(['a', 'b']);
    expect(acquired).toEqual(['wallet:b', 'wallet:a']);
  });

  it('of an acquired lease enters it', async () => {
    await using lease = await locks.acquire('wallet:a');
    expect(await lease.call(wallet, wallet.check, 'a')).toBe(lease.fencingToken);
  });

  it('is the only way into the lock: the same method without it waits, and its error has heldAround', async () => {
    await locks.withLock('wallet:a', async () => {
      await expect(wallet.check('a')).rejects.toMatchObject({ code: 'LOCK_TAKEN', heldAround: true });
    });
  });

  it('of a method with oncePerMs is rejected', async () => {
    await locks.withLock('wallet:a', async (lease) => {
      const error = { code: 'LOCK_NOT_REENTRANT' };
      await expect(lease.call(wallet, wallet.bonus, 'a')).rejects.toMatchObject(error);
    });
  });

  it('of two decorators on a method gives the proof to the outer one', async () => {
    await locks.withLock('wallet:a', (lease) => lease.call(wallet, wallet.transfer, 'a'));
    expect(acquired).toEqual(['wallet:a', 'bank']);
    acquired = [];
    const held = await locks.withLock('wallet:a', (lease) => lease.call(wallet, wallet.close, 'a'));
    expect([held, acquired]).toEqual([
      ['wallet:a', 'branch:a'],
      ['wallet:a', 'branch:a'],
    ]);
    await locks.withLock('branch:a', async (lease) => {
      const error = { code: 'LOCK_TAKEN', key: 'branch:a', heldAround: true };
      await expect(lease.call(wallet, wallet.close, 'a')).rejects.toMatchObject(error);
    });
  });

  it('enters after a downgrade to read, and a read call without it is an ordinary reader', async () => {
    await locks.withLock('wallet:a', { mode: 'write' }, async (lease) => {
      await expect(wallet.balance('a')).rejects.toMatchObject({ code: 'LOCK_TAKEN', heldAround: true });
      await lease.downgrade();
      expect(await lease.call(wallet, wallet.balance, 'a')).toBe('a');
      expect(acquired).toEqual(['wallet:a']);
      expect(await wallet.balance('a')).toBe('a');
      expect(acquired).toEqual(['wallet:a', 'wallet:a']);
    });
  });

  it('has no part in withLocks: it is called on the lease of one key', async () => {
    await withLocks([{ service: locks, key: 'wallet:a' }], async (lease) => {
      expect(lease).not.toHaveProperty('call');
      await expect(wallet.check('a')).rejects.toMatchObject({ code: 'LOCK_TAKEN', heldAround: true });
      const own = lease.of(locks, 'wallet:a');
      expect(await own.call(wallet, wallet.check, 'a')).toBe(own.fencingToken);
      expect(currentLease()).toBe(own);
    });
  });

  it('calls a method that the object inherits, also one that it overrides: super.check', async () => {
    const { instance, locks: own } = lockedInstance(Savings);
    await own.withLock('wallet:a', async (lease) => {
      expect(await lease.call(instance, instance.audit, 'a')).toBe(lease.fencingToken);
      expect(await lease.call(instance, instance.move, 'a', 'b')).toEqual(['a', 'b']);
    });
  });
});

describe('lease.call refuses', () => {
  const refused = (call: (lease: Lease) => unknown): Promise<string> =>
    locks.withLock('wallet:a', (lease) => {
      try {
        call(lease);
      } catch (error) {
        expect(error).toBeInstanceOf(LockConfigurationError);
        return (error as Error).message;
      }
      throw new Error('it was called');
    });
  const CAUSES =
    /has no @Locked, another decorator above @Locked wraps it, a subclass overrides it, or it is a spy/;

  it('a method without @Locked, and one with another decorator above it', async () => {
    expect(await refused((lease) => lease.call(wallet, wallet.plain, 'a'))).toMatch(CAUSES);
    expect(await refused((lease) => lease.call(wallet, wallet.traced, 'a'))).toMatch(CAUSES);
  });

  it('a spy', async () => {
    const spy = vi.spyOn(wallet, 'check');
    expect(await refused((lease) => lease.call(wallet, wallet.check, 'a'))).toMatch(CAUSES);
    expect(spy).not.toHaveBeenCalled();
  });

  it('an override, and a locked method that the object does not have', async () => {
    const { instance } = lockedInstance(Savings);
    expect(await refused((lease) => lease.call(instance, instance.check, 'a'))).toMatch(CAUSES);
    const other = Other.prototype.check as never as Wallet['check'];
    expect(await refused((lease) => lease.call(wallet, other, 'a'))).toContain('another one under that name');
  });

  it('a bound copy, and a call without an object', async () => {
    expect(await refused((lease) => lease.call(wallet, wallet.check.bind(wallet), 'a'))).toMatch(CAUSES);
    const nothing = undefined as unknown as Wallet;
    expect(await refused((lease) => lease.call(nothing, wallet.check, 'a'))).toContain(
      'Pass the object first',
    );
    expect(await refused((lease) => lease.call(wallet, undefined as never, 'a' as never))).toMatch(CAUSES);
  });

  it('@Limited by its name, and the lease of a permit', async () => {
    expect(await refused((lease) => lease.call(wallet, wallet.limited, 'a'))).toMatch(
      /"limited": it is @Limited/,
    );
    await locks.permits('bank', { permits: 1 }).withPermit((permit) => {
      expect(() => permit.call(wallet, wallet.check, 'a')).toThrow(/"bank" is a permit, which does not nest/);
    });
  });
});

describe('the option inside', () => {
  it('takes one lease or a list, in withLock, tryWithLock, acquire and tryAcquire', async () => {
    await locks.withLock('a', (a) =>
      locks.withLock('b', async (b) => {
        expect(await locks.withLock('a', { inside: a }, (own) => own.fencingToken)).toBe(a.fencingToken);
        expect(await locks.tryWithLock(['a', 'b'], { inside: [a, b] }, () => 1)).toEqual({
          ran: true,
          value: 1,
        });
        await using one = await locks.acquire('b', { inside: [b, a] });
        expect(one.fencingToken).toBe(b.fencingToken);
        await using other = await locks.tryAcquire('a', { inside: a });
        expect(other?.fencingToken).toBe(a.fencingToken);
      }),
    );
    expect(acquired).toEqual(['a', 'b']);
  });

  it('refuses what is no lease, the lease of withLocks and that of a permit', async () => {
    const attempt = (inside: unknown) => locks.withLock('a', { inside: inside as Lease }, () => 'ran');
    for (const inside of [true, {}, [undefined], 'a']) {
      await expect(attempt(inside)).rejects.toThrow(/inside must be a lease, or a list of leases/);
    }
    await withLocks([{ service: locks, key: 'b' }], async (all) => {
      await expect(attempt(all)).rejects.toThrow(/of withLocks: lease\.of\(service, key\)/);
    });
    await locks.permits('bank', { permits: 1 }).withPermit(async (permit) => {
      await expect(attempt(permit)).rejects.toThrow(/"bank" is a permit, which does not nest/);
    });
  });
});

/** Ways to return rows. Each row is the token of the lock that its reader holds. */
class Rows {
  private token(): number {
    return currentLease('rows').fencingToken;
  }

  @Locked('rows')
  async *generator(): AsyncGenerator<number> {
    yield this.token();
    yield this.token();
  }

  @Locked('rows')
  async *losses(): AsyncGenerator<boolean> {
    const lease = currentLease();
    for (;;) yield lease.lost;
  }

  @Locked('rows')
  iterable(): AsyncIterable<number> {
    const token = (): number => this.token();
    return (async function* () {
      yield token();
      yield token();
    })();
  }

  @Locked('rows')
  async later(): Promise<AsyncGenerator<number>> {
    const token = (): number => this.token();
    return (async function* () {
      yield token();
      yield token();
    })();
  }

  @Locked('rows')
  async stream(): Promise<Readable> {
    const token = this.token();
    return Readable.from([token, token]);
  }

  @Locked('rows')
  observable(): Observable<number> {
    return of(this.token(), this.token());
  }
}

const all = async (rows: AsyncIterable<number>): Promise<number[]> => {
  const read: number[] = [];
  for await (const row of rows) read.push(row);
  return read;
};

/** Each way to return rows: calls the method now, and returns a function that reads its result. */
const WAYS = {
  generator: (lease: Lease, rows: Rows) => {
    const result = lease.call(rows, rows.generator);
    return () => all(result);
  },
  observable: (lease: Lease, rows: Rows) => {
    const result = lease.call(rows, rows.observable);
    return () => lastValueFrom(result.pipe(toArray()));
  },
  iterable: (lease: Lease, rows: Rows) => {
    const result = lease.call(rows, rows.iterable);
    return () => all(result);
  },
  'promise of a generator': (lease: Lease, rows: Rows) => {
    const result = lease.call(rows, rows.later);
    return async () => all(await result);
  },
  'promise of a stream': (lease: Lease, rows: Rows) => {
    const result = lease.call(rows, rows.stream);
    return async () => all((await result) as AsyncIterable<number>);
  },
} as const;
/** They acquire the lock when a reader begins. */
const LAZY = ['generator', 'observable'] as const;
/** They acquire the lock at the call. */
const EAGER = ['iterable', 'promise of a generator', 'promise of a stream'] as const;

describe('a nested call whose result is read later', () => {
  let rows: Rows;
  beforeEach(() => {
    ({ instance: rows, locks } = lockedInstance(Rows));
    acquired = [];
    locks.on('acquired', ({ key }) => acquired.push(key));
  });
  afterEach(() => vi.useRealTimers());

  it.each([...LAZY, ...EAGER])('enters while the outer lease is held: %s', async (way) => {
    await locks.withLock('rows', async (lease) => {
      const { fencingToken } = lease;
      const read = WAYS[way](lease, rows);
      expect(await read()).toEqual([fencingToken, fencingToken]);
    });
    expect(acquired).toEqual(['rows']);
    expect(isIdle(locks)).toBe(true);
  });

  it.each(EAGER)('keeps the outer section open until it has been read: %s', async (way) => {
    const called = deferred<() => Promise<number[]>>();
    let hasEnded = false;
    const section = locks
      .withLock('rows', (lease) => called.resolve(WAYS[way](lease, rows)))
      .then(() => (hasEnded = true));
    const read = await called.promise;
    expect(await locks.isLocked('rows')).toBe(true);
    expect(hasEnded).toBe(false);
    expect(await read()).toHaveLength(2);
    await section;
    expect(acquired).toEqual(['rows']);
    expect(isIdle(locks)).toBe(true);
  });

  it('keeps the outer section open while it is read: a generator', async () => {
    const reader = deferred<AsyncGenerator<number>>();
    const section = locks.withLock('rows', async (lease) => {
      const result = lease.call(rows, rows.generator);
      await result.next();
      reader.resolve(result);
    });
    const result = await reader.promise;
    expect(await locks.isLocked('rows')).toBe(true);
    expect(await all(result)).toHaveLength(1);
    await section;
    expect(acquired).toEqual(['rows']);
    expect(isIdle(locks)).toBe(true);
  });

  it.each(LAZY)('is an ordinary caller for a reader that comes after the release: %s', async (way) => {
    const [read, token] = await locks.withLock(
      'rows',
      async (lease) => [WAYS[way](lease, rows), lease.fencingToken] as const,
    );
    expect(acquired).toEqual(['rows']);
    const [first, second] = await read();
    expect(first).toBe(second);
    expect(first).toBeGreaterThan(token);
    expect(acquired).toEqual(['rows', 'rows']);
  });

  it('is decided for each subscriber of an Observable', async () => {
    const lease = await locks.acquire('rows');
    const read = WAYS.observable(lease, rows);
    expect(await read()).toEqual([lease.fencingToken, lease.fencingToken]);
    await lease.release();
    expect((await read())[0]).toBeGreaterThan(lease.fencingToken);
    expect(acquired).toEqual(['rows', 'rows']);
  });

  it.each(LAZY)('gets LockLostError for a reader that comes after the loss: %s', async (way) => {
    await locks.withLock('rows', async (lease) => {
      const read = WAYS[way](lease, rows);
      await locks.forceUnlock('rows');
      await expect(read()).rejects.toBeInstanceOf(LockLostError);
    });
    expect(acquired).toEqual(['rows']);
  });

  it.each(EAGER)('gets LockLostError when it is called after the loss: %s', async (way) => {
    await locks.withLock('rows', async (lease) => {
      await locks.forceUnlock('rows');
      await expect(WAYS[way](lease, rows)()).rejects.toBeInstanceOf(LockLostError);
    });
    expect(acquired).toEqual(['rows']);
  });

  it.each(LAZY)('holds nothing before it is read: %s', async (way) => {
    await locks.withLock('rows', (lease) => void WAYS[way](lease, rows));
    expect(isIdle(locks)).toBe(true);
  });

  it.each(['promise of a generator', 'promise of a stream'] as const)(
    'holds the outer section for 30 s if no reader comes: %s',
    async (way) => {
      vi.useFakeTimers();
      const section = locks.withLock('rows', (lease) => void WAYS[way](lease, rows));
      await vi.advanceTimersByTimeAsync(UNREAD_MS - 1);
      expect(await locks.isLocked('rows')).toBe(true);
      await vi.advanceTimersByTimeAsync(2);
      await section;
      expect(isIdle(locks)).toBe(true);
    },
  );

  it('does not hold the outer section if it is an iterable that is neither awaited nor read', async () => {
    vi.useFakeTimers();
    const section = locks.withLock('rows', (lease) => void WAYS.iterable(lease, rows));
    await vi.advanceTimersByTimeAsync(UNREAD_MS + 1);
    await section;
    expect(isIdle(locks)).toBe(true);
  });

  it('has lost its lock when its acquired lease is released while it is read', async () => {
    const lease = await locks.acquire('rows');
    const reader = lease.call(rows, rows.losses);
    expect((await reader.next()).value).toBe(false);
    await lease.release();
    expect((await reader.next()).value).toBe(true);
    await reader.return(undefined);
    expect(isIdle(locks)).toBe(true);
  });
});
