import { Injectable, Module, NotFoundException, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Limited, Locked, LockNotAcquiredError, LockService, RedisLockModule } from 'nest-redis-lock';
import { defer, lastValueFrom, of, Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { useLab } from '../support/redis/lab.js';

const lab = useLab();

/** A Nest app with these providers, on the lab's Redis. It ends with the test. */
const appWith = (...providers: Type[]) => appOn(lab.server.url, ...providers);

const appOn = async (redis: string, ...providers: Type[]) => {
  @Module({ imports: [RedisLockModule.forRoot({ redis })], providers })
  class App {}
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  lab.track({ [Symbol.asyncDispose]: () => app.close() });
  return app;
};

/** As the retry decorators of the registry do it: the method is replaced by one that calls it several times. */
const Retry =
  (times: number) =>
  <T extends (...args: never[]) => Promise<unknown>>(
    _target: object,
    _name: string | symbol,
    descriptor: TypedPropertyDescriptor<T>,
  ): void => {
    const original = descriptor.value!;
    descriptor.value = async function (this: unknown, ...args: never[]) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await original.apply(this, args);
        } catch (error) {
          if (attempt === times) throw error;
        }
      }
    } as T;
  };

describe('@Locked', () => {
  it('lets errors of the method pass as they are: the same object, of the same class', async () => {
    const failure = new NotFoundException('no such order');
    @Injectable()
    class Orders {
      @Locked('order:<<id>>')
      async find(id: string): Promise<string> {
        if (id === '7') throw failure;
        return id;
      }
      @Locked('order:<<id>>')
      async fail(id: string): Promise<string> {
        if (id === '7') throw 'not even an error';
        return id;
      }
    }
    const orders = (await appWith(Orders)).get(Orders);
    expect(await orders.find('7').catch((error: unknown) => error)).toBe(failure);
    expect(await orders.fail('7').catch((error: unknown) => error)).toBe('not even an error');
    expect(await lab.leftovers()).toEqual([]);
  });

  it("onBusy: 'skip' gives undefined and does not run; without it the error says that the lock is taken", async () => {
    @Injectable()
    class Report {
      runs = 0;
      @Locked('report', { onBusy: 'skip' })
      async daily(): Promise<string | undefined> {
        return `run ${(this.runs += 1)}`;
      }
      @Locked('report', { waitMs: 0 })
      async now(): Promise<string> {
        return `run ${(this.runs += 1)}`;
      }
    }
    const report = (await appWith(Report)).get(Report);
    const other = lab.open();
    const lease = await other.locks.acquire('report');
    expect(await report.daily()).toBeUndefined();
    await expect(report.now()).rejects.toBeInstanceOf(LockNotAcquiredError);
    expect(report.runs).toBe(0);
    await lease.release();
    expect([await report.daily(), await report.now()]).toEqual(['run 1', 'run 2']);
  });

  it('under a retry decorator takes the lock for each attempt; above one it keeps it over all of them', async () => {
    @Injectable()
    class Orders {
      attempts = 0;
      holders = new Set<string>();
      constructor(readonly locks: LockService) {}

      @Retry(3)
      @Locked('retried')
      async retriedOutside(): Promise<number> {
        return this.attempt('retried');
      }

      @Locked('retried')
      @Retry(3)
      async retriedInside(): Promise<number> {
        return this.attempt('retried');
      }

      private async attempt(key: string): Promise<number> {
        this.holders.add((await this.locks.inspect(key))!.holders[0]!.owner);
        this.attempts += 1;
        if (this.attempts % 3 !== 0) throw new Error(`attempt ${this.attempts}`);
        return this.attempts;
      }
    }
    const orders = (await appWith(Orders)).get(Orders);
    expect(await orders.retriedOutside()).toBe(3);
    expect(orders.holders.size).toBe(3);
    orders.holders.clear();
    expect(await orders.retriedInside()).toBe(6);
    expect(orders.holders.size).toBe(1);
    expect(await lab.leftovers()).toEqual([]);
  });

  it('with awaitRelease: false gives its end, however it gives it, before the answer to the release', async () => {
    const proxy = await lab.proxy();
    // Called inside the section: its lock is there, and Redis is not heard from then on.
    const cutOff = (value: string): string => {
      proxy.blackhole(['toClient']);
      return value;
    };
    const awaitRelease = false;
    @Injectable()
    class Orders {
      @Locked('promise', { awaitRelease })
      async promise(): Promise<string> {
        return cutOff('promise');
      }
      @Limited('permit', { permits: 1, awaitRelease })
      async permit(): Promise<string> {
        return cutOff('permit');
      }
      @Locked('observable', { awaitRelease })
      observable(): Observable<string> {
        return defer(() => of(cutOff('observable')));
      }
      @Locked('generator', { awaitRelease })
      async *generator(): AsyncGenerator<string> {
        yield cutOff('generator');
      }
      @Locked('failure', { awaitRelease })
      async failure(): Promise<string> {
        throw new NotFoundException(cutOff('failure'));
      }
    }
    const app = await appOn(proxy.url, Orders);
    const [orders, locks] = [app.get(Orders), app.get(LockService)];
    const calls = {
      promise: () => orders.promise(),
      permit: () => orders.permit(),
      observable: () => lastValueFrom(orders.observable()),
      generator: async () => {
        const values: string[] = [];
        for await (const value of orders.generator()) values.push(value);
        return values.join();
      },
      failure: () => orders.failure().catch((error: NotFoundException) => error.message),
    };
    for (const [name, call] of Object.entries(calls)) {
      expect(await call()).toBe(name);
      expect([name, locks.usage.leases]).toEqual([name, 1]);
      await proxy.restore();
      await until(() => locks.usage.leases === 0);
      expect(await locks.isLocked(name)).toBe(false);
    }
  });
});
