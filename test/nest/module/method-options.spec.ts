// Options of a method that only its module and its store can judge.
import { Controller, Get, Injectable, UseGuards, type CanActivate } from '@nestjs/common';
import { bindLocks, MemoryStore } from 'nest-redis-lock/testing';
import { describe, expect, it } from 'vitest';
import { Limited, LockConfigurationError, Locked, LockService, RedisLockModule } from 'nest-redis-lock';
import type { LockStore } from 'nest-redis-lock/store';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import type { LockedOptions } from '../../../lib/nest/locked/locked.options.js';
import { resolveOptions } from '../../../lib/nest/module/redis-lock.options.js';
import { storeOn } from '../../../lib/nest/module/store-of-options.js';
import { Log } from '../../support/core/core-under-test.js';
import { STORES } from '../../support/stores/stores.js';
import { useApps } from '../../support/nest/apps.js';

const apps = useApps();

const start = (options: LockedOptions, store: LockStore = new MemoryStore()) => {
  @Injectable()
  class Jobs {
    @Locked('job', options as { maxHoldMs?: number })
    async run(): Promise<void> {}
  }
  return apps.context({
    module: class AppModule {},
    imports: [RedisLockModule.forRoot({ store, watchdogMs: 6_000 })],
    providers: [Jobs],
  });
};

const ofSessions = (): LockStore =>
  Object.assign(new MemoryStore(), { name: 'SessionStore', lease: { type: 'session', timeoutMs: 9_000 } });

const withoutFair = (): LockStore => {
  const store = new MemoryStore();
  const { exclusive } = store.kinds;
  return Object.assign(store, { name: 'Plain', kinds: { exclusive } });
};

describe('an app does not start when a method has', () => {
  it.each([
    [
      'a maxHoldMs below a third of the watchdogMs of its module',
      { maxHoldMs: 1_999 },
      undefined,
      'maxHoldMs must be',
    ],
    [
      'oncePerMs, and its store ends locks with a session',
      { oncePerMs: 60_000 },
      ofSessions,
      'oncePerMs: SessionStore',
    ],
    ['holdAtLeastMs, and such a store', { holdAtLeastMs: 60_000 }, ofSessions, 'holdAtLeastMs: SessionStore'],
    [
      'a mode that its store lacks',
      { mode: 'fair' },
      withoutFair,
      'Plain cannot keep locks of the kind "fair"',
    ],
  ] as const)('%s', async (_what, options, store, message) => {
    const starting = start(options, store?.());
    await expect(starting).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(starting).rejects.toThrow(`Jobs.run: ${message}`);
  });

  it('a mode that its store lacks, also in a guard that only a controller names', async () => {
    @Injectable()
    class Guard implements CanActivate {
      @Locked('guard', { mode: 'fair' })
      async canActivate(): Promise<boolean> {
        return true;
      }
    }
    @Controller()
    class Orders {
      @UseGuards(Guard)
      @Get()
      list(): string {
        return 'none';
      }
    }
    const module = { module: class AppModule {}, controllers: [Orders] };
    const imports = [RedisLockModule.forRoot({ store: withoutFair() })];
    await expect(apps.context({ ...module, imports })).rejects.toThrow(
      'Guard.canActivate: Plain cannot keep locks of the kind "fair"',
    );
  });

  it('nothing of that', async () => {
    const app = await start({ maxHoldMs: 2_000, oncePerMs: 60_000 });
    expect(app.get(LockService).usage.leases).toBe(0);
  });
});

/** Binds an object with a method that has the decorator, as the start of an app does. */
const bind = (store: LockStore, decorator: (...args: never[]) => void): void => {
  class Jobs {
    async run(): Promise<void> {}
  }
  const { prototype } = Jobs;
  Reflect.apply(decorator, undefined, [prototype, 'run', Object.getOwnPropertyDescriptor(prototype, 'run')]);
  const manager = new LockManager(store, resolveSettings({}), new Log());
  bindLocks(new Jobs(), new LockService(manager));
};

/** A use of a store, whether a store has it, and its name in the refusal. */
type Use = [
  what: string,
  isThere: (store: LockStore) => boolean,
  use: (store: LockStore) => void,
  name: string,
];

/** Stores that count the tokens of each key. */
const WITH_COUNTERS = ['MemoryStore', 'RedisStore'];

/** Each use that not every store has. */
const USES: readonly Use[] = [
  ...(['fair', 'read', 'write'] as const).map((mode): Use => [
    `mode: ${mode}`,
    ({ kinds }) => mode in kinds,
    (store) => bind(store, Locked('k', { mode })),
    mode,
  ]),
  [
    'a list with a key of mode: read',
    ({ kinds }) => 'read' in kinds,
    (store) => bind(store, Locked(['a', { key: 'k', mode: 'read' }])),
    'read',
  ],
  [
    '@Limited',
    ({ kinds }) => 'permit' in kinds,
    (store) => bind(store, Limited('k', { permits: 3 })),
    'permit',
  ],
  [
    '@Limited without permits',
    ({ permits }) => permits !== undefined,
    (store) => bind(store, Limited('k')),
    'permit',
  ],
  ...(['holdAtLeastMs', 'oncePerMs'] as const).map((name): Use => [
    name,
    ({ lease }) => lease.type === 'expiring',
    (store) => bind(store, Locked('k', { [name]: 100 })),
    name,
  ]),
  [
    "fencing: 'redisson'",
    (store) => WITH_COUNTERS.includes(store.constructor.name),
    (store) => void storeOn(undefined, resolveOptions({ store, fencing: 'redisson' })),
    'fencing',
  ],
];

describe.each(STORES)(
  'an app on $name does not start with what that lacks, and with all else:',
  ({ open }) => {
    it.each(USES)('%s', async (_what, isThere, use, name) => {
      const store = open();
      try {
        if (isThere(store)) return use(store);
        expect(() => use(store)).toThrow(LockConfigurationError);
        expect(() => use(store)).toThrow(store.name);
        expect(() => use(store)).toThrow(name);
      } finally {
        await store.close();
      }
    });
  },
);
