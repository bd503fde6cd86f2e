import 'reflect-metadata';
import { firstValueFrom, of, type Observable } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { currentLease, Limited, Locked, LockConfigurationError, type VaryingOptions } from 'nest-redis-lock';
import { lockedInstance } from './fixture.js';

const LEASE_MS = 4_000;
const failure = new Error('no configuration');

class Reports {
  readonly config = { leaseMs: LEASE_MS };
  /** What the functions return next. */
  more: VaryingOptions | undefined = { leaseMs: LEASE_MS };
  asked: unknown[] = [];

  @Locked('report', { onLost: 'throw' }, (self: Reports) => ({ leaseMs: self.config.leaseMs }))
  async ofInstance(): Promise<number> {
    return currentLease().remainingMs();
  }

  @Locked('report:<<_id>>', { maxHoldMs: undefined }, (self: Reports, id: string, urgent: boolean) => {
    self.asked.push([id, urgent]);
    return self.more;
  })
  async ofArguments(_id: string, _urgent: boolean): Promise<number> {
    return currentLease().remainingMs();
  }

  @Locked('report', {}, (self: Reports) => self.more)
  stream(): Observable<number> {
    return of(currentLease().remainingMs());
  }

  @Locked('report', {}, (self: Reports) => self.more)
  async *generator(): AsyncGenerator<number> {
    yield currentLease().remainingMs();
  }

  @Limited('reports', { permits: 2, waitMs: 5 }, (self: Reports) => self.more)
  async limited(): Promise<number> {
    return currentLease().remainingMs();
  }

  @Locked('report', {}, () => {
    throw failure;
  })
  async failing(): Promise<void> {}
}

describe('a function for options', () => {
  const { instance, locks } = lockedInstance(Reports, 1_000);
  afterEach(() => {
    instance.more = { leaseMs: LEASE_MS };
    instance.asked = [];
  });

  const fixedLease = (leftMs: number) => {
    expect(leftMs).toBeLessThanOrEqual(LEASE_MS);
    expect(leftMs).toBeGreaterThan(LEASE_MS - 2_000);
  };

  it('gives a lease from the instance', async () => fixedLease(await instance.ofInstance()));

  it('gets the instance and the arguments of each call', async () => {
    fixedLease(await instance.ofArguments('a', true));
    instance.more = { leaseMs: 2 * LEASE_MS };
    expect(await instance.ofArguments('b', false)).toBeGreaterThan(LEASE_MS);
    expect(instance.asked).toEqual([
      ['a', true],
      ['b', false],
    ]);
  });

  it('leaves the defaults when it returns nothing, or only names that are undefined', async () => {
    for (const more of [undefined, {}, { leaseMs: undefined, waitMs: undefined }]) {
      instance.more = more;
      expect(await instance.ofArguments('a', true)).toBeGreaterThan(LEASE_MS);
    }
  });

  it('serves observables, generators and permits', async () => {
    fixedLease(await firstValueFrom(instance.stream()));
    for await (const leftMs of instance.generator()) fixedLease(leftMs);
    fixedLease(await instance.limited());
  });

  it('has its object checked once, and every other object again', async () => {
    let reads = 0;
    const counted = {
      get leaseMs() {
        reads += 1;
        return LEASE_MS;
      },
    };
    instance.more = counted;
    await instance.ofArguments('a', true);
    const atFirst = reads;
    await instance.ofArguments('a', true);
    expect(reads).toBe(atFirst);
    instance.more = { leaseMs: 0 };
    await expect(instance.ofArguments('a', true)).rejects.toThrow(/leaseMs/);
  });

  it('fails the call with its own error, without a lock', async () => {
    await expect(instance.failing()).rejects.toBe(failure);
    expect(await locks.isLocked('report')).toBe(false);
  });

  it.each([
    [{ mode: 'fair' }, /Reports\.ofArguments: mode cannot vary/],
    [{ onBusy: 'skip' }, /onBusy cannot vary/],
    [{ service: 'billing' }, /service cannot vary/],
    [{ oncePerMs: 5_000 }, /oncePerMs cannot vary/],
    [{ label: 'x' }, /label cannot vary/],
    [{ permits: 3 }, /permits cannot vary/],
    [{ leaseMS: 5 }, /leaseMS is no option of @Locked/],
    [{ leaseMs: -1 }, /Reports\.ofArguments: .*leaseMs/],
    [Promise.resolve({ leaseMs: 5 }), /Reports\.ofArguments: .*an object such as/],
    [{ toString: 5 }, /toString is no option of @Locked/],
    ['5 s', /an object such as/],
    [[], /an object such as/],
    [null, /an object such as/],
  ])('that returns %j is refused by name, before a lock is requested', async (more, message) => {
    instance.more = more as never;
    const call = instance.ofArguments('a', true);
    await expect(call).rejects.toThrow(LockConfigurationError);
    await expect(call).rejects.toThrow(message);
    expect(locks.usage.keys).toBe(0);
  });

  it('that returns a promise is refused without an unhandled rejection', async () => {
    const promise = Promise.reject(new Error('nothing handles this'));
    instance.more = promise as never;
    await expect(instance.ofArguments('a', true)).rejects.toThrow(/and no promise/);
  });

  it('that returns a name of the options is refused', async () => {
    instance.more = { waitMs: 10 };
    await expect(instance.limited()).rejects.toThrow(/waitMs stands in the options/);
  });

  it('is refused by name if it is no function', () => {
    const declaring = () => {
      class Wrong {
        @Locked('report', {}, { leaseMs: 5 } as never)
        async run(): Promise<void> {}
      }
      return Wrong;
    };
    expect(declaring).toThrow(/Wrong\.run: .*a function that returns further options/);
  });
});
