import { cp } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisServer } from '../support/servers/redis-server.js';
import { ConsumerApp, INSTALL_TIMEOUT_MS, RUN_TIMEOUT_MS } from './support/consumer-app.js';

type Kinds = Record<'esm' | 'cjs', readonly string[]>;

interface AppReport {
  readonly services: number;
  readonly tokens: readonly number[];
  readonly mostInside: number;
  readonly nested: readonly (readonly number[])[];
  readonly inherited: readonly string[];
  readonly status: number;
  readonly whileTaken: { readonly status: number; readonly error: Kinds };
  readonly left: number;
}

interface BothBuildsReport {
  readonly exported: unknown;
  readonly folders: unknown;
  readonly apps: Record<'esm' | 'cjs', AppReport>;
  readonly outside: Record<'esm' | 'cjs', Kinds>;
  readonly foreignStore: Record<'esm' | 'cjs', Kinds>;
  readonly fenced: Record<'esm' | 'cjs', Kinds>;
  readonly named: number;
  readonly twiceUnnamed: Kinds;
  readonly madeByHand: number;
}

/** What depends on Nest, and so each build has one. */
const OF_NEST_LAYER = [
  ...[
    'InjectLockService',
    'Leader',
    'Limited',
    'LockExceptionFilter',
    'LockHttpException',
    'LockModule',
    'Locked',
  ],
  ...['RedisLockModule', 'createLockService', 'getLockServiceToken'],
];
const OF_CORE = [
  ...['LockAbortedError', 'LockConfigurationError', 'LockError', 'LockKeyError', 'LockLostError'],
  ...['LockNotAcquiredError', 'LockStoreError', 'QuorumStore', 'RedisStore', 'StoreFailure', 'StoreHosts'],
  ...['StoreQueueEntry', 'currentLease', 'detached', 'fenceTransaction', 'findLease', 'lockKey'],
  ...['migrateFencing', 'runOrDelay', 'sweepFences', 'withLocks'],
];

const inBoth = (...kinds: readonly string[]): Kinds => ({ esm: kinds, cjs: kinds });

describe('an ESM app with a CommonJS dependency, and so with both builds in one process', () => {
  let app: ConsumerApp;
  let report: BothBuildsReport;

  beforeAll(async () => {
    await using server = await RedisServer.start();
    app = await ConsumerApp.install('both-builds');
    await cp(app.path('node_modules/nest-redis-lock'), app.path('node_modules/second-copy'), {
      recursive: true,
    });
    await app.compile('packages/billing');
    report = (await app.run('dist/main.js', { REDIS_URL: server.url })) as BothBuildsReport;
  }, INSTALL_TIMEOUT_MS);
  afterAll(() => app?.[Symbol.asyncDispose]());

  it('is type-checked: services, leases and stores of one build fit where the other asks for them', async () => {
    expect((await app.compile()).stdout).toBe('');
  });

  it('runs code of both', () => {
    expect(report.folders).toEqual({ esm: 'esm', cjs: 'cjs' });
  });

  it('has one core: the builds share errors, stores, the lock service and the current lease', () => {
    expect(report.exported).toEqual({
      shared: [...OF_CORE, 'LockHealthIndicator', 'LockService'].sort(),
      separate: OF_NEST_LAYER,
    });
  });

  it(
    'can import both entry points and the dependency at the same time',
    { timeout: RUN_TIMEOUT_MS },
    async () => {
      const facts = { twoBuilds: true, oneService: true, testing: 'function' };
      expect(await app.run('dist/import-at-once.js', {})).toEqual(facts);
    },
  );

  it(
    'does not start when its module and its classes come from two copies of the package',
    { timeout: RUN_TIMEOUT_MS },
    async () => {
      const { injected, decorated } = (await app.run('dist/second-copy.js', {})) as Record<string, string>;
      expect(injected).toContain("Nest can't resolve dependencies of the Injected");
      expect(decorated).toContain("Nest can't resolve dependencies of the Decorated");
      expect(decorated).toContain('two copies of the package, which `npm ls nest-redis-lock` shows');
    },
  );

  describe.each(['esm', 'cjs'] as const)('with the module of the %s build', (build) => {
    it('injects one lock service by its class, whichever build the class came from', () => {
      expect(report.apps[build].services).toBe(1);
    });

    it('excludes locked methods of the two from each other', () => {
      const { tokens, mostInside } = report.apps[build];
      expect(mostInside).toBe(1);
      expect(tokens).toHaveLength(10);
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    });

    it('shows the current lease to both, and lease.call enters methods of the other', () => {
      for (const tokens of report.apps[build].nested) {
        expect(tokens).toHaveLength(3);
        expect(new Set(tokens).size).toBe(1);
      }
    });

    it('locks what a class of one inherits from a class of the other', () => {
      expect(report.apps[build].inherited).toEqual(['account-trial:7', 'account:7']);
    });

    it('locks the handler of a controller in CommonJS, and answers 423 for it', () => {
      const { status, whileTaken } = report.apps[build];
      expect([status, whileTaken.status]).toEqual([201, 423]);
    });

    it('throws errors that are instances of the classes of both, and of no other', () => {
      expect(report.apps[build].whileTaken.error).toEqual(inBoth('LockError', 'LockNotAcquiredError'));
      expect(report.outside[build]).toEqual(inBoth('LockConfigurationError', 'LockError'));
    });

    it('knows the failure of a store that was made by the other', () => {
      expect(report.foreignStore[build]).toEqual(inBoth('LockError', 'LockStoreError'));
    });

    it('fences a lease of the other, with an error that both know', () => {
      expect(report.fenced[build]).toEqual(inBoth('LockError', 'LockLostError'));
    });

    it('holds nothing in the end', () => {
      expect(report.apps[build].left).toBe(0);
    });
  });

  it('takes the modules of both side by side when they have different names, and refuses them otherwise', () => {
    expect(report.named).toBe(2);
    expect(report.twiceUnnamed).toEqual(inBoth('LockConfigurationError', 'LockError'));
  });

  it('binds an object of one with the testing subpath of the other', () => {
    expect(report.madeByHand).toBe(1);
  });
});
