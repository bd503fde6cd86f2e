import { expect } from 'vitest';
import {
  createLockService,
  Leader,
  Limited,
  LockConfigurationError,
  Locked,
  LockError,
  RedisLockModule,
  runOrDelay,
  withLocks,
  type LockService,
  type LockServiceOptions,
  type RedisLockModuleOptions,
} from 'nest-redis-lock';
import { QuorumStore, RedisStore } from 'nest-redis-lock/redis';
import { bindLocks, createTestingLocks, MemoryStore, RedisLockTestingModule } from 'nest-redis-lock/testing';
import type { LockSettings } from '../../../lib/core/settings/lock-settings.js';
import {
  resolveOptions,
  WITHOUT_NEST,
  type LockInterceptorOptions,
} from '../../../lib/nest/module/redis-lock.options.js';
import { leadersIn } from '../../../lib/nest/leader/leader-methods.js';
import { resolveTestingSettings, type TestingSettings } from '../../../lib/testing/testing-options.js';
import { deferred } from '../../support/async.js';
import * as rows from './calls.table.js';
import { isLockable } from './good-keys.js';
import { ms, type Locks, type Option, type Options } from './option.js';
import * as setup from './setup.table.js';
import { KEY, VirtualLocks } from './virtual-locks.js';

/** A place where options are given. */
export interface Place {
  readonly title: string;
  readonly options: Options;
  /** Its name in the error for an option that it does not have. Without it, it ignores such an option. */
  readonly owner?: string;
  /** What its errors begin with. */
  readonly where?: string;
  /** What stands before the name of an option in an error: `interceptor.`. */
  readonly path?: string;
  /** Options without which it does not work. */
  readonly needs?: object;
  /** Options that it has, too, but that are rows of another place. */
  readonly knows?: readonly string[];
  /** Whether it checks that the options are an object, and whether they may be left out. */
  readonly whole?: 'optional' | 'needed';
  /** Whether Nest copies the options before they are checked: then the error of a getter is its own. */
  readonly isCopied?: true;
  /** Gives it options. Rejects when they are refused: when a class is loaded, at start, or at the call. */
  readonly give: (options: never) => Promise<Locks | undefined>;
}

type Work = () => unknown;
type Run = (locks: LockService, options: never, work: Work) => Promise<unknown>;

/** What a call acquires or waits for. */
interface Subject {
  readonly open?: (world: VirtualLocks) => Promise<unknown>;
  readonly exhaust: (world: VirtualLocks) => Promise<Work>;
}

const LOCK: Subject = { exhaust: async (world) => world.takeElsewhere() };
const PERMIT: Subject = { exhaust: async (world) => world.takeElsewhere('permit') };
const SEMAPHORE: Subject = {
  open: ({ locks }) => locks.semaphore(KEY).trySetPermits(1),
  exhaust: async ({ locks }) => {
    await locks.semaphore(KEY).drainPermits();
    return () => locks.semaphore(KEY).release();
  },
};
const LATCH: Subject = {
  exhaust: async ({ locks }) => {
    await locks.countDownLatch(KEY).trySetCount(1);
    return () => locks.countDownLatch(KEY).countDown();
  },
};

/** Makes a call. Options are refused before a request is sent. Other errors of a lock do not concern them. */
const attempt = async (world: VirtualLocks, call: Work): Promise<void> => {
  const before = world.requests;
  try {
    await call();
  } catch (error) {
    if (error instanceof LockConfigurationError) expect(world.requests).toBe(before);
    else if (error instanceof LockError) return;
    throw error;
  }
};

/** Makes the call once in a world of its own, and can then make it in another one. */
const callFor =
  ({ open, exhaust }: Subject, run: Run): Place['give'] =>
  async (options) => {
    const trial = new VirtualLocks();
    await open?.(trial);
    await attempt(trial, () => run(trial.locks, options, () => 'ran'));
    const world = new VirtualLocks();
    await open?.(world);
    return { world, run: (work) => run(world.locks, options, work), exhaust: () => exhaust(world) };
  };

const call = (title: string, options: Options, subject: Subject, run: Run): Place => ({
  title,
  options,
  owner: title,
  whole: 'optional',
  give: callFor(subject, run),
});

const ONE = { permits: 1 };

const CALLS: readonly Place[] = [
  call('withLock', rows.SECTION, LOCK, (locks, options, work) => locks.withLock(KEY, options, work)),
  call('tryWithLock', { ...rows.SECTION, ...rows.TRY }, LOCK, async (locks, options, work) => {
    const tried = await locks.tryWithLock(KEY, options, work);
    return tried.ran ? tried.value : undefined;
  }),
  call('acquire', rows.ACQUIRE, LOCK, async (locks, options, work) => {
    await using _lease = await locks.acquire(KEY, options);
    return await work();
  }),
  call('tryAcquire', { ...rows.ACQUIRE, ...rows.TRY }, LOCK, async (locks, options, work) => {
    await using lease = await locks.tryAcquire(KEY, options);
    return lease ? await work() : undefined;
  }),
  {
    title: 'withLocks',
    owner: 'withLocks',
    options: rows.SEVERAL,
    give: callFor(LOCK, (service, options, work) => withLocks([{ service, key: KEY }], options, work)),
  },
  call('permits', rows.NUMBER_OF_PERMITS, PERMIT, async (locks, options, work) =>
    locks.permits(KEY, options).withPermit(work),
  ),
  call('withPermit', rows.PERMIT_SECTION, PERMIT, (locks, options, work) =>
    locks.permits(KEY, ONE).withPermit(options, work),
  ),
  call('permits().acquire', rows.PERMIT, PERMIT, async (locks, options, work) => {
    await using _lease = await locks.permits(KEY, ONE).acquire(options);
    return await work();
  }),
  call('permits().tryAcquire', { ...rows.PERMIT, ...rows.TRY }, PERMIT, async (locks, options, work) => {
    await using lease = await locks.permits(KEY, ONE).tryAcquire(options);
    return lease ? await work() : undefined;
  }),
  call('semaphore.acquire', rows.WAIT, SEMAPHORE, async (locks, options, work) => {
    await locks.semaphore(KEY).acquire(1, options);
    return work();
  }),
  call('semaphore.tryAcquire', { ...rows.WAIT, ...rows.TRY }, SEMAPHORE, async (locks, options, work) =>
    (await locks.semaphore(KEY).tryAcquire(1, options)) ? work() : undefined,
  ),
  call('countDownLatch.wait', rows.WAIT, LATCH, async (locks, options, work) => {
    await locks.countDownLatch(KEY).wait(options);
    return work();
  }),
  call('countDownLatch.tryWait', { ...rows.WAIT, ...rows.TRY }, LATCH, async (locks, options, work) =>
    (await locks.countDownLatch(KEY).tryWait(options)) ? work() : undefined,
  ),
];

/** A decorated method. */
const decorator = (owner: '@Locked' | '@Limited'): Place => {
  const isLocked = owner === '@Locked';
  const decorate = (isLocked ? Locked : Limited) as unknown as (...args: unknown[]) => MethodDecorator;
  const section = isLocked ? rows.LOCKED : { ...rows.PERMIT_SECTION, ...rows.NUMBER_OF_PERMITS };
  return {
    title: owner,
    owner,
    where: 'Orders.pay: ',
    options: { ...section, ...rows.DECORATOR },
    needs: isLocked ? {} : ONE,
    whole: 'optional',
    give: async (options) => {
      class Orders {
        @decorate(KEY, options)
        async pay(work: Work): Promise<unknown> {
          return work();
        }
      }
      const pay: Run = (locks, _options, work) => bindLocks(new Orders(), locks).pay(work);
      return callFor(isLocked ? LOCK : PERMIT, pay)(options);
    },
  };
};

/** Runs the work in a leadership, as a call does. Its end stops the candidate. */
const leading = async (
  candidateOf: (lead: () => Promise<unknown>) => { stop(): Promise<void> },
  work: Work,
): Promise<unknown> => {
  const done = deferred<unknown>();
  const candidate = candidateOf(async () => {
    try {
      done.resolve(await work());
    } catch (error) {
      done.reject(error);
    }
  });
  try {
    return await done.promise;
  } finally {
    await candidate.stop();
  }
};

const LEADERS: readonly Place[] = [
  call('lead', rows.LEAD, LOCK, (locks, options, work) =>
    leading((lead) => locks.lead(KEY, lead, options), work),
  ),
  {
    title: '@Leader',
    owner: '@Leader',
    where: 'Index.lead: ',
    options: rows.LEADER,
    whole: 'optional',
    give: async (options) => {
      class Index {
        work: Work = () => 'ran';

        @((Leader as (...args: unknown[]) => MethodDecorator)(KEY, options))
        async lead(): Promise<unknown> {
          return this.work();
        }
      }
      const instance = new Index();
      // As the module does it, for the service that the options name.
      const service = (options as { service?: string } | undefined)?.service;
      const lead: Run = (locks, _options, work) => {
        instance.work = work;
        const [found] = leadersIn([{ instance }], service, locks);
        return leading((run) => {
          instance.work = run;
          return locks.lead(found!.key, found!.lead, found!.options);
        }, work);
      };
      return callFor(LOCK, lead)(options);
    },
  },
];

/** A method that takes a number instead of options. */
const argument = (
  title: string,
  options: Options,
  run: (locks: LockService, value: never) => unknown,
): Place => ({
  title,
  options,
  give: async (given) => {
    const world = new VirtualLocks();
    await attempt(world, () => run(world.locks, Object.values(given)[0] as never));
    return undefined;
  },
});

const REQUIRED: Option = { ...rows.AMOUNT, required: true };

const ARGUMENTS: readonly Place[] = [
  argument('semaphore.acquire(permits)', { permits: rows.AMOUNT }, (locks, permits) =>
    locks.semaphore(KEY).acquire(permits, { waitMs: 0 }),
  ),
  argument('semaphore.tryAcquire(permits)', { permits: rows.AMOUNT }, (locks, permits) =>
    locks.semaphore(KEY).tryAcquire(permits),
  ),
  argument('semaphore.release(permits)', { permits: rows.AMOUNT }, (locks, permits) =>
    locks.semaphore(KEY).release(permits),
  ),
  argument('semaphore.trySetPermits(permits)', { permits: REQUIRED }, (locks, permits) =>
    locks.semaphore(KEY).trySetPermits(permits),
  ),
  argument('semaphore.addPermits(permits)', { permits: rows.CHANGE }, (locks, permits) =>
    locks.semaphore(KEY).addPermits(permits),
  ),
  argument('countDownLatch.trySetCount(count)', { count: REQUIRED }, (locks, count) =>
    locks.countDownLatch(KEY).trySetCount(count),
  ),
  {
    title: 'lease.extend(ms)',
    options: { extend: rows.EXTENSION },
    give: async ({ extend }: { extend: number }) => {
      const world = new VirtualLocks();
      const lease = await world.locks.acquire(KEY);
      await attempt(world, () => lease.extend(extend));
      return { world, run: (work) => work() as Promise<unknown>, exhaust: () => LOCK.exhaust(world) };
    },
  },
];

/** Locks with the settings of a module. */
const withSettings = (settings: LockSettings, module?: Locks['module']): Locks => {
  const world = new VirtualLocks(settings);
  return {
    world,
    module,
    run: (work) => world.locks.withLock(KEY, work),
    exhaust: () => LOCK.exhaust(world),
  };
};

type Given = RedisLockModuleOptions & { readonly name?: string };

/** What the module makes of its options. Nest takes the name out before the others are resolved. */
const start = async (given: Given): Promise<Locks> => {
  const { exports = [] } = RedisLockModule.forRoot(given);
  const { name: _name, ...options } = given;
  const resolved = resolveOptions(options);
  return withSettings(resolved.settings, { ...resolved, exports });
};

/** What a service without Nest makes of its options. */
const startWithoutNest = async (given: LockServiceOptions): Promise<Locks> => {
  await (await createLockService(given)).close();
  const resolved = resolveOptions(given, WITHOUT_NEST);
  return withSettings(resolved.settings, { ...resolved, exports: [] });
};

const opened = async (store: { close(): Promise<void> }): Promise<undefined> => {
  await store.close();
};

/** No server listens there, and no request is sent. */
const NOWHERE = { host: '127.0.0.1', port: 1 };
const store = new MemoryStore();

/** The start refuses a prefix with half a pair of braces, too: a key without braces cannot have it. */
const USABLE_PREFIX: Option = {
  ...setup.SETTINGS.keyPrefix,
  allows: (value) => setup.SETTINGS.keyPrefix.allows(value) && isLockable(`${value as string}key`),
  wrong: [...setup.SETTINGS.keyPrefix.wrong, '{', '{}'],
};

const SETUPS: readonly Place[] = [
  {
    title: 'RedisLockModule.forRoot',
    owner: 'RedisLockModule',
    options: { ...setup.SETTINGS, ...setup.MODULE },
    needs: { store, redis: undefined },
    whole: 'needed',
    isCopied: true,
    give: start,
  },
  {
    title: 'createLockService',
    owner: 'createLockService',
    options: { ...setup.SETTINGS, keyPrefix: USABLE_PREFIX, store: setup.MODULE.store },
    needs: { store, redis: undefined },
    whole: 'needed',
    give: startWithoutNest,
  },
  {
    title: 'RedisLockModule.forRoot, interceptor',
    owner: 'interceptor',
    path: 'interceptor.',
    options: setup.INTERCEPTOR,
    give: (interceptor: LockInterceptorOptions) => start({ store, interceptor }),
  },
  {
    title: 'createTestingLocks',
    owner: 'createTestingLocks',
    options: { ...setup.SETTINGS, ...setup.TESTING },
    give: async (options: TestingSettings) => {
      createTestingLocks('memory', options);
      // Its default of 1 s would hide what the other options do.
      return withSettings(resolveTestingSettings('memory', { maxWaitMs: Infinity, ...options }).settings);
    },
  },
  {
    title: 'RedisLockTestingModule.forRoot',
    owner: 'RedisLockTestingModule.forRoot()',
    options: { ...setup.SETTINGS, ...setup.TESTING, ...setup.TESTING_MODULE },
    knows: ['names'],
    whole: 'optional',
    give: async (options) => void RedisLockTestingModule.forRoot(options),
  },
  {
    title: 'RedisStore',
    owner: 'RedisStore',
    options: setup.REDIS_STORE,
    needs: { redis: NOWHERE },
    whole: 'needed',
    knows: ['shardedPubSub'],
    give: async (options) => opened(new RedisStore(options)),
  },
  {
    title: 'RedisStore, replicas',
    owner: 'replicas',
    path: 'replicas.',
    options: setup.REPLICAS,
    needs: { min: 1 },
    give: async (replicas) => opened(new RedisStore({ redis: NOWHERE, replicas })),
  },
  {
    title: 'RedisStore, on a cluster',
    options: setup.CLUSTER,
    needs: { redis: { cluster: [NOWHERE] } },
    give: async (options) => opened(new RedisStore(options)),
  },
  {
    title: 'QuorumStore',
    options: { ...setup.QUORUM, minDelayMs: setup.QUORUM.delayAfterRestartMs },
    needs: { nodes: [new MemoryStore(), new MemoryStore()] },
    whole: 'needed',
    give: async (options) => void new QuorumStore(options),
  },
  {
    title: 'MemoryStore',
    options: setup.MEMORY_STORE,
    give: async (options) => void new MemoryStore(options),
  },
];

const JOBS: readonly Place[] = [
  {
    title: 'runOrDelay',
    owner: 'runOrDelay',
    options: { delayMs: ms(1) },
    whole: 'optional',
    give: async (options) => {
      await runOrDelay({ moveToDelayed: () => Promise.resolve() }, 'token', () => 'ran', options);
      return undefined;
    },
  },
];

export const PLACES: readonly Place[] = [
  ...CALLS,
  ...JOBS,
  decorator('@Locked'),
  decorator('@Limited'),
  ...LEADERS,
  ...ARGUMENTS,
  ...SETUPS,
];
