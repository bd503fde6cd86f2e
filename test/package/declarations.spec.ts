import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { INSTALL_TIMEOUT_MS } from './support/consumer-app.js';
import { PackedTypes } from './support/packed-types.js';

const ERROR = 'code key label retryable';
const STORE = 'name place lease commandTimeoutMs kinds open checkKey inspect forceUnlock ping close';

const SERVICE =
  'withLock tryWithLock acquire tryAcquire permits semaphore countDownLatch inspect lead list ' +
  'isLocked forceUnlock revoke held usage ping on instanceId';

/** The public members of each exported class: static members and members of its instances. */
const MEMBERS: Readonly<Record<string, string>> = {
  CountDownLatch: 'key wait tryWait trySetCount countDown getCount delete',
  Lease:
    'keys key id fencingToken tokenFor owner ownerOf grantedBy signal lost loss remainingMs extend verify call ' +
    'onRevocationRequested downgrade run release toJSON [asyncDispose]',
  LockAbortedError: ERROR,
  LockConfigurationError: ERROR,
  LockError: ERROR,
  LockExceptionFilter: 'catch',
  LockHealthIndicator: 'check checkOrThrow',
  LockHttpException: 'code extensions',
  LockKeyError: `${ERROR} clientPlaceholder`,
  LockLostError: `${ERROR} reason`,
  LockNotAcquiredError: `${ERROR} waitersAhead heldAs holder retryAfterMs heldAround`,
  LockService: SERVICE,
  LockTesting: 'elect hold loseEverywhere revoke',
  LossReport: 'failed runs steps throwIfUnfenced toString unfenced writes',
  LockStoreError: `${ERROR} outcome reason`,
  MemorySpace: 'size',
  MemoryStore: `${STORE} hasCounters processes list permits semaphores latches space size revoke`,
  MysqlStore: `${STORE} processes list permits migrate`,
  MultiLease: 'parts of signal lost loss remainingMs toJSON',
  PostgresStore: `${STORE} processes list permits migrate`,
  Permits: 'key withPermit acquire tryAcquire inspect',
  StoreQueueEntry: 'notify mayHaveMissed listen leave',
  LockModule: 'forRoot forRootAsync onModuleInit onApplicationBootstrap',
  QuorumStore: `${STORE} processes list diagnose`,
  RedisLockInstrumentation:
    'instrumentationName instrumentationVersion enable disable setTracerProvider setMeterProvider setConfig getConfig',
  RedisLockModule: 'forRoot forRootAsync onModuleInit onApplicationBootstrap',
  RedisLockTestingModule: 'forRoot forRootAsync onModuleInit',
  TestingLockService: `${SERVICE} testing`,
  RedisStore: `${STORE} hasCounters processes list permits semaphores latches address serverTimes diagnose`,
  Semaphore: 'key acquire tryAcquire release trySetPermits addPermits availablePermits drainPermits delete',
  StoreFailure: 'name outcome transient passing keyOnly claimOnly overloaded',
  StoreHosts: 'add log warn atRisk revocationRequested',
  ZooKeeperStore: `${STORE} processes list revoke`,
};

describe('the declarations of the package', () => {
  let types: PackedTypes;

  beforeAll(async () => {
    types = await PackedTypes.unpack();
  }, INSTALL_TIMEOUT_MS);
  afterAll(() => types?.[Symbol.asyncDispose]());

  it('compile by themselves, also without skipLibCheck', () => {
    expect(types.complaints()).toEqual([]);
  });

  it('show no member that is for the library alone', () => {
    expect.soft(types.filesWith('@internal')).toEqual([]);
    const members = Object.entries(MEMBERS).map(([name, list]) => [name, list.split(' ').sort()]);
    expect(types.members()).toEqual(Object.fromEntries(members));
  });

  it('have no decorator in an example that an editor takes for a tag', () => {
    expect([...types.tags()].sort()).toEqual(['example', 'param', 'throws']);
  });

  describe('in an editor', () => {
    const IMPORTS = "import { Limited, Locked, LockService, RedisLockModule } from 'nest-redis-lock';\n";

    it.each([
      ['a template', "@▸Locked('order:<<id>>', { waitMs: 5 })"],
      ['several templates', "@▸Locked(['order:<<id>>', 'log'])"],
      ['a key function', '@▸Locked((id: string) => id, { waitMs: 5 })'],
      ['a key function with this', '@▸Locked(function (this: Shop, id: string) { return id; })'],
      ['a key function of a method', "@▸Locked<Shop['sell']>((id) => id)"],
      ['such a function and skip', "@▸Locked<Shop['sell']>((id) => id, { onBusy: 'skip' })"],
    ])('shows the documentation of @Locked with %s, and its example', (_case, decorator) => {
      const [hover] = types.hovers(
        `${IMPORTS}class Shop { ${decorator} async sell(id: string): Promise<void> {} }`,
      );
      expect(hover?.docs).toContain('Runs a method of any provider or controller inside a lock');
      expect(hover?.docs).toContain("@Locked('order:<<userId>>', { waitMs: 2_000 })");
    });

    it.each([
      ['a template', "@▸Limited('crm:<<id>>', { permits: 3 })"],
      ['a key function', '@▸Limited((id: string) => id, { permits: 3 })'],
    ])('shows the documentation of @Limited with %s, and its example', (_case, decorator) => {
      const [hover] = types.hovers(
        `${IMPORTS}class Shop { ${decorator} async sell(id: string): Promise<void> {} }`,
      );
      expect(hover?.docs).toContain("with one of the key's permits");
      expect(hover?.docs).toContain("@Limited('crm:<<tenant>>', { permits: 3 })");
    });

    it.each([
      ['@Locked', "@Locked('order:<<id>>', { ▸waitMs: 5, ▸holdAtLeastMs: 5, ▸onBusy: () => undefined })"],
      [
        '@Locked with a function',
        '@Locked((id: string) => id, { ▸waitMs: 5, ▸holdAtLeastMs: 5, ▸onBusy: () => undefined })',
      ],
      [
        '@Limited',
        "@Limited('crm', { ▸waitMs: 5, ▸holdAtLeastMs: 5, ▸onBusy: () => undefined, ▸permits: 3 })",
      ],
    ])('shows the documentation of each option of %s', (_case, decorator) => {
      const hovers = types.hovers(
        `${IMPORTS}class Shop { ${decorator} async sell(id: string): Promise<void> {} }`,
      );
      const docs = [
        'Maximum wait for the lock',
        'Minimum time in ms, from the grant',
        'What to do when the lock is taken',
        'Number of permits',
      ];
      expect(hovers.map((hover) => hover.docs)).toEqual(
        docs.slice(0, hovers.length).map((text) => expect.stringContaining(text) as unknown),
      );
    });

    it('shows the documentation of forRoot, and of each option in it', () => {
      const [forRoot, redis, waitMs] = types.hovers(
        `${IMPORTS}RedisLockModule.▸forRoot({ ▸redis: 'redis://localhost', ▸waitMs: 5 });`,
      );
      expect(forRoot?.docs).toContain("Registers the app's lock service");
      expect(redis?.docs).toContain('Address of Redis');
      expect(waitMs?.docs).toContain('Maximum wait');
    });

    it('shows the lock service under its public name, with its documentation', () => {
      const [type, variable] = types.hovers(
        `${IMPORTS}export const use = (locks: ▸LockService) => ▸locks.ping();`,
      );
      expect(type?.docs).toContain('Acquires locks and permits without a decorator');
      expect(variable?.signature).toBe('(parameter) locks: LockService');
    });
  });
});
