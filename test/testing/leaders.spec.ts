import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Leader, LockConfigurationError, type LeadershipEnd, type Leadership } from 'nest-redis-lock';
import {
  createTestingLocks,
  RedisLockTestingModule,
  TestingLockService,
  type RedisLockTestingOptions,
} from 'nest-redis-lock/testing';
import { afterEach, describe, expect, it } from 'vitest';

const closing: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const module of closing.splice(0)) await module.close();
});

@Injectable()
class Index {
  readonly log: string[] = [];
  failure: unknown;

  @Leader('leader:index')
  async lead({ signal }: Leadership): Promise<void> {
    this.log.push('leads');
    if (this.failure !== undefined) throw this.failure;
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    this.log.push('ends');
  }
}

const start = async (options?: RedisLockTestingOptions) => {
  const imports = [RedisLockTestingModule.forRoot(options)];
  const module = await Test.createTestingModule({ imports, providers: [Index] }).compile();
  await module.init();
  closing.push(module);
  const locks = module.get(TestingLockService);
  const lost: LeadershipEnd[] = [];
  locks.on('leader-lost', ({ reason }) => void lost.push(reason));
  return { module, index: module.get(Index), locks, lost };
};

describe.each(['memory', 'off'] as const)('elections of a test, mode %s', (mode) => {
  it('elect calls the method, and revoke takes the leadership away, again and again', async () => {
    const { index, locks, lost } = await start({ mode });
    await locks.withLock('x', () => undefined);
    expect(index.log).toEqual([]);
    for (const times of [1, 2, 3]) {
      await locks.testing.elect('leader:index');
      expect(index.log.slice(-1)).toEqual(['leads']);
      await locks.testing.elect('leader:index');
      expect(index.log).toHaveLength(2 * times - 1);
      await locks.testing.revoke('leader:index');
      expect(index.log.slice(-1)).toEqual(['ends']);
      expect(lost).toHaveLength(times);
      expect(locks.usage.leases).toBe(0);
    }
  });
});

describe('an election of a test', () => {
  it('rejects with the error of a method that fails at once, which may be elected again', async () => {
    const { index, locks, lost } = await start();
    index.failure = new Error('no index');
    await expect(locks.testing.elect('leader:index')).rejects.toBe(index.failure);
    expect(lost).toEqual(['rejected']);
    index.failure = undefined;
    await locks.testing.elect('leader:index');
    expect(index.log).toEqual(['leads', 'leads']);
  });

  it('ends with the app', async () => {
    const { module, index, locks, lost } = await start();
    await locks.testing.elect('leader:index');
    await module.close();
    expect([index.log, lost]).toEqual([['leads', 'ends'], ['shutdown']]);
  });

  it('waits for a hold from outside for maxWaitMs', async () => {
    const { locks, index } = await start({ maxWaitMs: 20 });
    await using _outside = await locks.testing.hold('leader:index');
    await expect(locks.testing.elect('leader:index')).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
    expect(index.log).toEqual([]);
  });

  it('names the candidates when there is none for the key, and refuses to revoke without a leader', async () => {
    const { locks } = await start();
    await expect(locks.testing.elect('leader:indx')).rejects.toThrow(
      'testing.elect: there is no candidate for "leader:indx"; there is "leader:index".',
    );
    await expect(locks.testing.revoke('leader:index')).rejects.toThrow('this process does not lead');
  });

  it('works on a candidate by hand, without Nest', async () => {
    const locks = createTestingLocks();
    const calls: Leadership[] = [];
    const candidate = locks.lead('k', (leadership) => void calls.push(leadership));
    expect(candidate.isLeader).toBe(false);
    await locks.testing.elect('k');
    expect([candidate.isLeader, calls[0]!.signal.aborted]).toEqual([true, false]);
    await locks.testing.revoke('k');
    expect([candidate.isLeader, calls[0]!.signal.aborted]).toEqual([false, true]);
    await candidate.stop();
  });

  it('shows a method that ignores its signal: revoke rejects after maxWaitMs', async () => {
    const locks = createTestingLocks('memory', { maxWaitMs: 20 });
    locks.lead('k', () => new Promise(() => undefined));
    await locks.testing.elect('k');
    const message = 'has not ended 20 ms (maxWaitMs) after its signal';
    await expect(locks.testing.revoke('k')).rejects.toThrow(message);
    await expect(locks.testing.elect('k')).rejects.toThrow(message);
  });

  it('is one, however many ask for it at once', async () => {
    const { locks, index } = await start({ maxWaitMs: 20 });
    await Promise.all([1, 2, 3].map(() => locks.testing.elect('leader:index')));
    expect(index.log).toEqual(['leads']);
  });
});

describe('a function for options of @Leader', () => {
  @Injectable()
  class Imports {
    /** What the function returns next. */
    more: unknown = { watchdogMs: 9_000 };
    asked = 0;

    @Leader('leader:imports', { label: 'imports' }, (self: Imports) => {
      self.asked += 1;
      return self.more as { watchdogMs: number };
    })
    async lead({ signal }: Leadership): Promise<void> {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    }
  }

  const startImports = async () => {
    const imports = [RedisLockTestingModule.forRoot()];
    const module = await Test.createTestingModule({ imports, providers: [Imports] }).compile();
    await module.init();
    closing.push(module);
    return { self: module.get(Imports), locks: module.get(TestingLockService) };
  };

  it('gets the instance each time the process begins to contend', async () => {
    const { self, locks } = await startImports();
    expect(self.asked).toBe(0);
    for (const [more, leaseMs] of [
      [{ watchdogMs: 9_000 }, 9_000],
      [undefined, 30_000],
      [{ watchdogMs: 12_000 }, 12_000],
    ] as const) {
      self.more = more;
      await locks.testing.elect('leader:imports');
      const [{ remainingMs, label } = { remainingMs: 0 }] = locks.held();
      expect(label).toBe('imports');
      expect(remainingMs).toBeLessThanOrEqual(leaseMs);
      expect(remainingMs).toBeGreaterThan(leaseMs - 2_000);
      await locks.testing.revoke('leader:imports');
    }
    expect(self.asked).toBe(3);
  });

  it.each([
    [{ label: 'x' }, 'Imports.lead: label cannot vary'],
    [{ service: 'billing' }, 'Imports.lead: service cannot vary'],
    [{ waitMs: 5 }, 'Imports.lead: waitMs is no option of @Leader'],
    [{ watchdogMs: 5 }, 'Imports.lead: watchdogMs must be'],
    [Promise.resolve({}), 'Imports.lead: The result of the function for options must be an object'],
  ])('that returns %j is refused by name, before anything is requested', async (more, text) => {
    const { self, locks } = await startImports();
    self.more = more;
    const electing = locks.testing.elect('leader:imports');
    await expect(electing).rejects.toThrow(text);
    await expect(electing).rejects.toBeInstanceOf(LockConfigurationError);
    expect([locks.usage.keys, locks.held()]).toEqual([0, []]);
    self.more = undefined;
    await locks.testing.elect('leader:imports');
    expect(locks.held()).toHaveLength(1);
  });

  it('that returns a name of the options is refused by name', async () => {
    @Injectable()
    class Twice {
      @Leader('leader:twice', { watchdogMs: 9_000 }, () => ({ watchdogMs: 9_000 }))
      async lead(): Promise<void> {}
    }
    const imports = [RedisLockTestingModule.forRoot()];
    const module = await Test.createTestingModule({ imports, providers: [Twice] }).compile();
    await module.init();
    closing.push(module);
    const electing = module.get(TestingLockService).testing.elect('leader:twice');
    await expect(electing).rejects.toThrow('Twice.lead: watchdogMs stands in the options');
  });
});
