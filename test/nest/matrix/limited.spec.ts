// @Limited in apps: over two instances of one app, on Redis and in memory, and what ends a wait for a permit.
import { once } from 'node:events';
import { connect } from 'node:net';
import { Controller, Get, Injectable, Query } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { MemorySpace, MemoryStore } from 'nest-redis-lock/testing';
import { Observable } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  currentLease,
  Limited,
  LockAbortedError,
  Locked,
  LockService,
  type RedisLockModuleOptions,
} from 'nest-redis-lock';
import { deferred, until, within, type Deferred } from '../../support/async.js';
import { LOOPBACK } from '../../support/loopback.js';
import { Apps, rootModule } from '../../support/nest/apps.js';
import { PLATFORMS, startHttp } from '../../support/nest/http.js';
import { RecordingLogger } from '../../support/nest/recording-logger.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = new Apps();

/** One call at work, which ends when the test says so. */
interface Job {
  readonly name: string;
  readonly end: Deferred<void>;
}

let jobs: Job[];
let began: string[];
beforeEach(async () => {
  [jobs, began] = [[], []];
  await world.redis.flushall();
});
afterEach(async () => {
  for (const { end } of jobs) end.resolve();
  await apps.close();
});

const atWork = async (name: string): Promise<void> => {
  const job = { name, end: deferred() };
  jobs.push(job);
  began.push(name);
  await job.end.promise;
  jobs.splice(jobs.indexOf(job), 1);
};

const isIdle = (locks: LockService): boolean => Object.values(locks.usage).every((size) => size === 0);

const failure = new Error('the customer database said no');

@Injectable()
@Controller()
class Crm {
  @Limited('crm:<<tenant>>', { permits: 3, waitMs: 60_000 })
  async sync(tenant: string, name: string): Promise<string> {
    await atWork(name);
    return `${tenant} ${name}`;
  }

  @Limited('crm:<<tenant>>', { permits: 3, waitMs: 60_000 })
  changes(tenant: string, name: string): Observable<string> {
    return new Observable((subscriber) => {
      subscriber.next(`${tenant} ${name}`);
      void atWork(name).then(() => subscriber.complete());
    });
  }

  @Limited('crm:<<tenant>>', { permits: 3, waitMs: 60_000 })
  async *pages(tenant: string, name: string): AsyncGenerator<string> {
    yield `${tenant} ${name}`;
    await atWork(name);
  }

  @Limited('crm:<<tenant>>', { permits: 3, onBusy: 'skip' })
  async ifFree(tenant: string): Promise<string | undefined> {
    return tenant;
  }

  @Limited('crm:<<tenant>>', { permits: 3 })
  async fail(tenant: string): Promise<void> {
    throw Object.assign(failure, { tenant });
  }

  @Locked('customer:<<id>>', { waitMs: 60_000 })
  @Limited('crm', { permits: 2, waitMs: 60_000 })
  async customer(id: string): Promise<string> {
    await atWork(id);
    return currentLease(`customer:${id}`).key;
  }

  @Limited('crm', { permits: 2, waitMs: 60_000 })
  @Locked('customer:<<id>>', { waitMs: 60_000 })
  async customerInside(id: string): Promise<string> {
    await atWork(id);
    return currentLease('crm').key;
  }

  @Get('report')
  @Limited('report', { permits: 1, waitMs: 60_000 })
  async report(@Query('name') name: string): Promise<string> {
    await atWork(name);
    return name;
  }

  @Get('report-now')
  @Limited('report', { permits: 1, waitMs: 0 })
  async reportNow(): Promise<string> {
    return 'now';
  }
}

type Options = Partial<RedisLockModuleOptions>;

/** Where the permits are: `options()` are those of one more instance of the same app. */
const PLACES: readonly (readonly [string, () => () => Options])[] = [
  ['Redis', () => () => world.options()],
  [
    'memory',
    () => {
      const shared = new MemorySpace();
      return () => ({ store: new MemoryStore({ shared }), waitMs: 0 });
    },
  ],
];

const start = async (
  options: Options,
): Promise<{ crm: Crm; locks: LockService; close: () => Promise<void> }> => {
  const app = await apps.context(rootModule(options, { providers: [Crm] }));
  return { crm: app.get(Crm), locks: app.get(LockService), close: () => app.close() };
};

describe.each(PLACES)('@Limited over two instances of an app, with its permits in %s,', (_where, place) => {
  const startTwo = async () => {
    const options = place();
    return [await start(options()), await start(options())] as const;
  };

  it('lets three of ten callers run at once, and callers of one instance in their order', async () => {
    const [one, two] = await startTwo();
    const names = Array.from({ length: 10 }, (_, at) => `${at % 2 === 0 ? 'one' : 'two'} ${at}`);
    const calls = names.map((name) => (name.startsWith('one') ? one : two).crm.sync('acme', name));
    const permits = async (): Promise<number> => {
      const held = (await one.locks.inspect('crm:acme'))?.holders.length ?? 0;
      expect(held).toBeLessThanOrEqual(3);
      return held;
    };
    for (let left = 10; left > 0; left--) {
      const running = Math.min(3, left);
      await until(() => jobs.length === running, { what: `${running} run` });
      // The release of a caller without a waiter behind it may still be under way.
      await until(async () => (await permits()) === running, { what: `${running} permits are held` });
      jobs[0]!.end.resolve();
      await until(() => began.length === Math.min(10, 14 - left), { what: 'the next one begins' });
      expect(jobs.length).toBeLessThanOrEqual(3);
    }
    expect(await Promise.all(calls)).toEqual(names.map((name) => `acme ${name}`));
    for (const instance of ['one', 'two']) {
      const ofInstance = (list: readonly string[]) => list.filter((name) => name.startsWith(instance));
      expect(ofInstance(began)).toEqual(ofInstance(names));
    }
    await until(() => isIdle(one.locks) && isIdle(two.locks));
    expect(await two.locks.inspect('crm:acme')).toBeNull();
  });

  it('counts what goes on as a stream until it has ended', async () => {
    const [one, two] = await startTwo();
    const pages = one.crm.pages('acme', 'pages');
    expect(await pages.next()).toEqual({ done: false, value: 'acme pages' });
    const values: string[] = [];
    const changes = two.crm.changes('acme', 'changes').subscribe((value) => values.push(value));
    await until(() => values.length === 1);
    const third = two.crm.sync('acme', 'third');
    await until(async () => (await one.locks.inspect('crm:acme'))?.holders.length === 3);
    expect(await one.crm.ifFree('acme')).toBeUndefined();
    expect(await one.crm.ifFree('other')).toBe('other');

    await pages.return(undefined);
    expect(await one.crm.ifFree('acme')).toBe('acme');
    changes.unsubscribe();
    await until(async () => (await one.locks.inspect('crm:acme'))?.holders.length === 1);
    for (const { end } of jobs) end.resolve();
    await third;
    expect(await one.locks.inspect('crm:acme')).toBeNull();
  });

  it('gives the permit back when the work fails, and passes its error on untouched', async () => {
    const [one] = await startTwo();
    for (let i = 0; i < 4; i++) await expect(one.crm.fail('acme')).rejects.toBe(failure);
    expect(await one.locks.inspect('crm:acme')).toBeNull();
  });

  it.each(['customer', 'customerInside'] as const)('stands beside @Locked: %s', async (method) => {
    const [one, two] = await startTwo();
    const calls = ['a', 'b', 'c'].map((id) => one.crm[method](id));
    await until(() => jobs.length === 2);
    expect(await two.locks.tryAcquire(`customer:${began[0]!}`)).toBeNull();
    expect((await two.locks.inspect('crm'))?.kind).toBe('permit');
    expect((await two.locks.inspect(`customer:${began[0]!}`))?.kind).toBe('exclusive');
    jobs[0]!.end.resolve();
    await until(() => began.length === 3);
    for (const { end } of jobs) end.resolve();
    await Promise.all(calls);
  });

  it('gets the permit of an instance that is gone when its lease is over', async () => {
    const [one, two] = await startTwo();
    // It is neither renewed nor released, as after a crash.
    const crashed = await one.locks.permits('render', { permits: 1 }).acquire({ leaseMs: 500 });
    const waiting = two.locks
      .permits('render', { permits: 1 })
      .withPermit({ waitMs: 60_000 }, () => 'rendered');
    expect(await within(10_000, waiting, 'the waiter')).toBe('rendered');
    expect(await crashed.release()).toBe('lost');
  });

  it('rejects waiters at shutdown, lets the running call finish, and releases its permit', async () => {
    const [one, two] = await startTwo();
    const working = one.crm.report('working');
    await until(() => jobs.length === 1);
    const waiting = one.crm.report('waiting');
    const refused = expect(waiting).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
    const closing = one.close();
    await refused;
    expect((await two.locks.inspect('report'))?.holders).toHaveLength(1);
    jobs[0]!.end.resolve();
    expect(await working).toBe('working');
    await within(10_000, closing, 'closing the app');
    expect(await two.locks.inspect('report')).toBeNull();
    expect(began).toEqual(['working']);
  });

  it('stops waiting when its signal says so', async () => {
    const [one] = await startTwo();
    await using _held = await one.locks.permits('report', { permits: 1 }).acquire();
    const gone = new AbortController();
    const waiting = one.locks
      .permits('report', { permits: 1 })
      .withPermit({ waitMs: 60_000, signal: gone.signal }, () => 1);
    await until(() => one.locks.usage.leases === 2);
    gone.abort();
    await expect(waiting).rejects.toBeInstanceOf(LockAbortedError);
    await until(() => one.locks.usage.undoing === 0);
    expect(one.locks.usage.leases).toBe(1);
    expect((await one.locks.inspect('report'))?.holders).toHaveLength(1);
  });
});

describe('instances that pass different numbers, as during a deploy', () => {
  it('go by the last one, and each instance says so once for a key', async () => {
    const logger = new RecordingLogger();
    const open = async () =>
      apps
        .add(await NestFactory.createApplicationContext(rootModule(world.options()), { logger }))
        .get(LockService);
    const [old, young] = [await open(), await open()];
    const warnings = () => logger.warnings.filter((line) => line.includes('permits of "mail"'));

    await using _one = await old.permits('mail', { permits: 1 }).acquire();
    expect(await old.permits('mail', { permits: 1 }).tryAcquire()).toBeNull();
    await using two = await young.permits('mail', { permits: 2 }).tryAcquire();
    expect(two).not.toBeNull();
    expect(warnings()).toEqual([expect.stringContaining('The permits of "mail" were 1 and are 2 now')]);
    // The limit is lowered below the number of held permits. No holder loses its permit.
    expect(await old.permits('mail', { permits: 1 }).tryAcquire()).toBeNull();
    expect(await young.permits('mail', { permits: 2 }).tryAcquire()).toBeNull();
    expect(two?.lost).toBe(false);
    expect(warnings()).toHaveLength(2);
  });
});

describe.each(PLATFORMS)('a request on %s that waits for a permit', (platform) => {
  it('gives up when its client goes away, and its place with it; 423 where it may not wait', async () => {
    const http = await startHttp(
      apps,
      platform,
      rootModule({ ...world.options(), waitMs: 60_000 }, { controllers: [Crm] }),
    );
    const locks = http.app.get(LockService);
    const first = http.get('/report?name=first');
    await until(() => jobs.length === 1);

    const socket = connect(http.port, LOOPBACK);
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.write(`GET /report?name=leaves HTTP/1.1\r\nHost: test\r\n\r\n`);
    await until(() => locks.usage.leases === 2, { what: 'the request waits' });
    socket.destroy();
    await until(() => locks.usage.leases === 1, { what: 'it does not wait any more' });

    expect((await http.get('/report-now')).status).toBe(423);
    jobs[0]!.end.resolve();
    expect(await (await first).text()).toBe('first');
    expect(await (await http.get('/report-now')).text()).toBe('now');
    expect(began).toEqual(['first']);
  });
});
