import { Controller, Injectable, Module, Scope, type OnModuleDestroy, type Type } from '@nestjs/common';
import {
  Leader,
  LockConfigurationError,
  Locked,
  LockHealthIndicator,
  LockKeyError,
  LockService,
  RedisLockModule,
  getLockServiceToken,
  type Leadership,
} from 'nest-redis-lock';
import { MemorySpace, MemoryStore } from 'nest-redis-lock/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { deferred, until } from '../../support/async.js';
import { rootModule, useApps } from '../../support/nest/apps.js';

const apps = useApps();
let space: MemorySpace;
let log: string[];
beforeEach(() => {
  space = new MemorySpace();
  log = [];
});

const options = (more: object = {}) => ({ store: new MemoryStore({ shared: space }), ...more });

const start = (providers: Type[], more: object = {}, controllers: Type[] = []) =>
  apps.context(rootModule(options(more), { providers, controllers }));

/** Notes what it is called with, and leads until its signal aborts. */
const follow = async (name: string, { signal, key, fencingToken }: Leadership): Promise<void> => {
  log.push(`${name} leads ${key} ${fencingToken > 0}`);
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
  log.push(`${name} ends`);
};

@Injectable()
class Index {
  readonly name: string = 'index';

  @Leader('leader:index')
  async lead(leadership: Leadership): Promise<void> {
    await follow(this.name, leadership);
  }
}

@Controller()
class Reports {
  @Leader('leader:reports', { label: 'reports' })
  async lead(leadership: Leadership): Promise<void> {
    await follow('reports', leadership);
  }
}

describe('@Leader', () => {
  it('leads from the start of the app until its end, on providers and controllers', async () => {
    const app = await start([Index], {}, [Reports]);
    await until(() => log.length === 2);
    expect(log.sort()).toEqual(['index leads leader:index true', 'reports leads leader:reports true']);
    const locks = app.get(LockService);
    expect(locks.held().map(({ label }) => label)).toEqual(['leader:index', 'reports']);
    // The key stands in the list of all processes.
    expect((await locks.list()).locks.map(({ key }) => key).sort()).toEqual([
      'leader:index',
      'leader:reports',
    ]);
    const health = await app.get(LockHealthIndicator).check();
    expect(health).toMatchObject({ locks: { status: 'up', holds: 2, leads: ['leader:index', 'reports'] } });
    await app.close();
    expect(log.slice(2).sort()).toEqual(['index ends', 'reports ends']);
    expect(space.inspect('lock:leader:index')).toBeNull();
  });

  it('is called on the object that a factory provides, once for all its tokens, also of a subclass', async () => {
    class Special extends Index {
      override readonly name = 'special';
    }
    @Module({
      providers: [
        { provide: 'made', useFactory: () => new Special() },
        { provide: 'alias', useExisting: 'made' },
      ],
    })
    class Made {}
    await apps.context(rootModule(options(), { imports: [Made] }));
    await until(() => log.length > 0);
    expect(log).toEqual(['special leads leader:index true']);
  });

  it('contends in the service that its options name', async () => {
    @Injectable()
    class Billing {
      @Leader('leader:billing', { service: 'billing', watchdogMs: 9_000 })
      async lead(leadership: Leadership): Promise<void> {
        await follow('billing', leadership);
      }
    }
    const imports = [RedisLockModule.forRoot({ ...options(), name: 'billing' })];
    const app = await apps.context(rootModule(options(), { providers: [Billing], imports }));
    await until(() => log.length > 0);
    const [held] = app.get<LockService>(getLockServiceToken('billing')).held();
    expect(held!.remainingMs).toBeLessThanOrEqual(9_000);
    expect(app.get(LockService).held()).toEqual([]);
  });

  it('does not contend with leaders: false, nor does a candidate by hand', async () => {
    const app = await start([Index], { leaders: false });
    const locks = app.get(LockService);
    const candidate = locks.lead('by hand', () => void log.push('by hand'));
    await locks.withLock('x', () => undefined);
    expect([log, candidate.isLeader, locks.usage.leases, locks.held()]).toEqual([[], false, 0, []]);
    await candidate.stop();
  });

  it('leaders: false comes from a factory, too', async () => {
    const useFactory = () => options({ leaders: false });
    const app = await apps.context({
      module: class AppModule {},
      imports: [RedisLockModule.forRootAsync({ useFactory })],
      providers: [Index],
    });
    expect([log, app.get(LockService).usage.leases]).toEqual([[], 0]);
  });

  it('is told to end before the hooks of the app go on, and the lock is free when the app has closed', async () => {
    const work = deferred();
    @Injectable()
    class Slow implements OnModuleDestroy {
      @Leader('slow')
      async lead({ signal }: Leadership): Promise<void> {
        log.push('leads');
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        log.push('signal');
        await work.promise;
        log.push('settled');
      }

      onModuleDestroy(): void {
        log.push('destroyed');
        work.resolve();
      }
    }
    const app = await start([Slow]);
    await until(() => log.length === 1);
    app.get(LockService).on('released', () => void log.push('released'));
    await app.close();
    expect(log.toSorted()).toEqual(['destroyed', 'leads', 'released', 'settled', 'signal']);
    expect(log.indexOf('settled')).toBeLessThan(log.indexOf('released'));
    expect(space.inspect('lock:slow')).toBeNull();
  });
});

describe('the start refuses @Leader', () => {
  const refused = async (
    providers: Type[],
    text: RegExp,
    more: object = {},
    kind: Type = LockConfigurationError,
  ) => {
    const starting = start(providers, more);
    await expect(starting).rejects.toThrow(text);
    await expect(starting).rejects.toBeInstanceOf(kind);
    expect(log).toEqual([]);
  };

  it.each([
    [Scope.REQUEST, 'request-scoped'],
    [Scope.TRANSIENT, 'transient'],
  ])('in a class of scope %i', async (scope, name) => {
    @Injectable({ scope })
    class Scoped {
      @Leader('leader:scoped')
      async lead(): Promise<void> {}
    }
    await refused([Scoped], new RegExp(`^Scoped.lead is @Leader, but Scoped is ${name}`));
  });

  it('in a class that depends on a request-scoped one', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Request {}
    @Injectable()
    class Dependent {
      constructor(readonly request: Request) {}

      @Leader('leader:dependent')
      async lead(): Promise<void> {}
    }
    Reflect.defineMetadata('design:paramtypes', [Request], Dependent);
    await refused(
      [Request, Dependent],
      /^Dependent.lead is @Leader, but Dependent is request-scoped, or depends/,
    );
  });

  it('on two methods with one key', async () => {
    @Injectable()
    class Other {
      @Leader('leader:index')
      async run(): Promise<void> {}
    }
    await refused([Index, Other], /^Index.lead and Other.run are @Leader\('leader:index'\)/);
  });

  it('of a class that two modules provide', async () => {
    @Module({ providers: [Index] })
    class Feature {}
    const starting = apps.context(rootModule(options(), { providers: [Index], imports: [Feature] }));
    await expect(starting).rejects.toThrow('there are two objects of Index. Provide the class in one module');
  });

  it('with options that the service does not take, or a key that its store does not keep', async () => {
    @Injectable()
    class Short {
      @Leader('leader:short', { watchdogMs: 1_000 })
      async lead(): Promise<void> {}
    }
    const store = Object.assign(new MemoryStore(), { commandTimeoutMs: 2_000 });
    await refused([Short], /^Short.lead: watchdogMs must be/, { store });
    @Injectable()
    class Brace {
      @Leader('leader:{short')
      async lead(): Promise<void> {}
    }
    await refused([Brace], /leader:\{short/, {}, LockKeyError);
  });

  it.each([['leader:both'], [['other', 'leader:both']], [[{ key: 'leader:both', mode: 'write' as const }]]])(
    'beside @Locked with the same key: %j',
    async (key) => {
      @Injectable()
      class Both {
        @Leader('leader:both')
        @Locked(key as string)
        async lead(): Promise<void> {}
      }
      await refused([Both], /^Both.lead: @Leader and @Locked have the same key/);
    },
  );

  it('without its lock module', async () => {
    @Injectable()
    class Lost {
      @Leader('leader:lost', { service: 'nowhere' })
      async lead(): Promise<void> {}
    }
    await expect(start([Lost])).rejects.toThrow(/LockService "nowhere"/);
  });
});

describe('loading a class refuses @Leader', () => {
  const untyped = Leader as unknown as (...args: unknown[]) => MethodDecorator;
  const load = (...args: unknown[]) => {
    class Loaded {
      @untyped(...args)
      async lead(): Promise<void> {}
    }
    return Loaded;
  };

  it.each([
    [[], 'Loaded.lead: give @Leader a key'],
    [[''], 'Loaded.lead: the lock key is empty'],
    [[['a', 'b']], 'Loaded.lead: the lock key must be a string'],
    [['leader:<<id>>'], 'has a placeholder, but a leader is called without arguments'],
    [['k', { waitMs: 5 }], 'Loaded.lead: waitMs is no option of @Leader'],
    [['k', { watchdogMs: 5 }], 'Loaded.lead: watchdogMs must be'],
    [['k', {}, {}], 'Loaded.lead: The third argument of @Leader must be a function'],
    [['k', {}, () => ({}), {}], 'Loaded.lead: @Leader takes a key, its options, and a function'],
  ])('%j', (args, text) => {
    expect(() => load(...args)).toThrow(text);
  });

  it('on a generator, a static method, a class, and without parentheses', () => {
    expect(() => {
      class Loaded {
        @untyped('k')
        async *lead(): AsyncGenerator<void> {}
      }
      return Loaded;
    }).toThrow('Loaded.lead: a generator function cannot be @Leader');
    expect(() => {
      class Loaded {
        @untyped('k')
        static async lead(): Promise<void> {}
      }
      return Loaded;
    }).toThrow('Loaded.lead: a static method cannot be @Leader');
    expect(() => {
      class Loaded {
        @(Leader as unknown as MethodDecorator)
        async lead(): Promise<void> {}
      }
      return Loaded;
    }).toThrow('Loaded.lead: write @Leader(');
  });
});
