import { Controller, Get, Injectable, Module, UseGuards } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  RedisLockTestingModule,
  TestingLockService,
  type RedisLockTestingOptions,
} from 'nest-redis-lock/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { listen } from '../support/nest/http.js';
import { QuotaGuard } from '../support/nest/quota-guard.js';
import {
  InjectLockService,
  LockService,
  Locked,
  RedisLockModule,
  currentLease,
  getLockServiceToken,
} from 'nest-redis-lock';

const closing: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const module of closing.splice(0)) await module.close();
});

const rounds = async (running: { now: number; max: number }): Promise<void> => {
  running.now++;
  running.max = Math.max(running.max, running.now);
  for (let i = 0; i < 5; i++) await Promise.resolve();
  running.now--;
};

@Injectable()
class Jobs {
  readonly running = { now: 0, max: 0 };

  @Locked('job')
  async run(): Promise<readonly [string, number]> {
    await rounds(this.running);
    return [currentLease().key, currentLease().fencingToken];
  }

  @Locked('job')
  async nested(): Promise<readonly [string, number]> {
    return currentLease().call(this, this.run);
  }

  @Locked('<<$tenant>>')
  async tenant(): Promise<string> {
    return currentLease().key;
  }

  @Locked('job', { onBusy: 'skip' })
  async skip(): Promise<'ran' | undefined> {
    return 'ran';
  }
}

const start = async (options?: RedisLockTestingOptions) => {
  const imports = [RedisLockTestingModule.forRoot(options)];
  const module = await Test.createTestingModule({ imports, providers: [Jobs] }).compile();
  await module.init();
  closing.push(module);
  return { module, jobs: module.get(Jobs), locks: module.get(LockService) };
};

describe('mode: memory', () => {
  it('excludes, as Redis would', async () => {
    const { jobs } = await start({ mode: 'memory' });
    await Promise.all([jobs.run(), jobs.run(), jobs.run()]);
    expect(jobs.running.max).toBe(1);
  });

  it('is the default', async () => {
    const { jobs, locks } = await start();
    await using _lease = await locks.acquire('job');
    await expect(jobs.skip()).resolves.toBeUndefined();
  });

  it('lets nested calls in', async () => {
    const { jobs } = await start();
    await expect(jobs.nested()).resolves.toEqual(['job', expect.any(Number)]);
  });

  it('does not share locks with another testing module', async () => {
    const [one, two] = [await start(), await start()];
    await using _lease = await one.locks.acquire('job');
    await expect(two.jobs.skip()).resolves.toBe('ran');
  });
});

describe('mode: off', () => {
  it('grants every lock at once, side by side, with the usual leases', async () => {
    const { jobs } = await start({ mode: 'off' });
    const results = await Promise.all([jobs.run(), jobs.run(), jobs.run()]);
    expect(jobs.running.max).toBe(3);
    expect(results).toEqual(Array.from({ length: 3 }, () => ['job', expect.any(Number)]));
  });

  it('never skips and never deadlocks', async () => {
    const { jobs, locks } = await start({ mode: 'off' });
    await using _lease = await locks.acquire('job');
    await expect(jobs.skip()).resolves.toBe('ran');
    await expect(jobs.nested()).resolves.toEqual(['job', expect.any(Number)]);
    await expect(locks.withLock(['a', 'job', 'a'], ({ keys }) => keys)).resolves.toEqual(['a', 'job']);
  });

  it('still refuses keys that cannot be rendered', async () => {
    const { jobs } = await start({ mode: 'off' });
    await expect(jobs.tenant()).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
  });
});

describe('its options', () => {
  it('give context values, and settings', async () => {
    const { jobs, locks } = await start({ context: () => ({ tenant: 'acme' }), waitMs: 0 });
    await expect(jobs.tenant()).resolves.toBe('acme');
    await using _lease = await locks.acquire('job');
    await expect(jobs.run()).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
  });

  it('stand in for named modules', async () => {
    @Injectable()
    class Billing {
      constructor(@InjectLockService('billing') readonly locks: LockService) {}

      @Locked('invoice', { service: 'billing' })
      async bill(): Promise<string> {
        return currentLease().key;
      }
    }
    const module = await Test.createTestingModule({
      imports: [RedisLockTestingModule.forRoot({ names: ['billing'] })],
      providers: [Billing, { provide: 'MADE', useFactory: () => new Billing(null as never) }],
    }).compile();
    await module.init();
    closing.push(module);
    await expect(module.get(Billing).bill()).resolves.toBe('invoice');
    await expect(module.get<Billing>('MADE').bill()).resolves.toBe('invoice');
    expect(module.get(Billing).locks).toBeInstanceOf(LockService);
  });
});

describe('an HTTP app of a test module', () => {
  it('maps a lock error of a guard, as any app does', async () => {
    @Controller('quota')
    @UseGuards(QuotaGuard)
    class QuotaController {
      @Get()
      spend(): void {}
    }
    const module = await Test.createTestingModule({
      imports: [RedisLockTestingModule.forRoot()],
      controllers: [QuotaController],
    }).compile();
    const app = module.createNestApplication();
    closing.push(app);
    const http = await listen(app);
    await using _outside = await module.get(TestingLockService).testing.hold('quota:bob');
    const reply = await http.get('/quota');
    expect([reply.status, await reply.json()]).toMatchObject([423, { code: 'LOCK_TAKEN' }]);
  });
});

describe('a whole app without Redis', () => {
  const locks = RedisLockModule.forRoot({ redis: 'redis://127.0.0.1:1' });

  @Module({ imports: [locks], providers: [Jobs] })
  class AppModule {}

  it('takes its locks from the testing module, by overrideModule', async () => {
    const module = await Test.createTestingModule({ imports: [AppModule] })
      .overrideModule(locks)
      .useModule(RedisLockTestingModule.forRoot())
      .compile();
    closing.push(module);
    await module.init();
    await expect(module.get(Jobs).run()).resolves.toEqual(['job', expect.any(Number)]);
    expect(module.get(LockService)).toBe(module.get(getLockServiceToken()));
  });
});
