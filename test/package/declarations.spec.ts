import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { INSTALL_TIMEOUT_MS } from './support/consumer-app.js';
import { PackedTypes } from './support/packed-types.js';

const ERROR = '[hasInstance] code key retryable';
const STORE = 'kinds checkKey inspect forceUnlock ping close';

/** What each exported class offers a user: its static members, and those of its instances. */
const MEMBERS: Readonly<Record<string, string>> = {
  CountDownLatch: 'key wait tryWait trySetCount countDown getCount delete',
  Lease:
    'keys key id fencingToken tokenFor owner ownerOf grantedBy signal lost loss remainingMs extend verify downgrade run ' +
    'release toJSON [asyncDispose]',
  LockAbortedError: ERROR,
  LockConfigurationError: ERROR,
  LockError: ERROR,
  LockExceptionFilter: 'catch',
  LockHttpException: 'code extensions',
  LockInterceptor: 'intercept',
  LockKeyError: ERROR,
  LockLostError: ERROR,
  LockNotAcquiredError: `${ERROR} waitersAhead heldAs`,
  LockService:
    'withLock tryWithLock acquire tryAcquire withPermit acquirePermit tryAcquirePermit semaphore countDownLatch inspect ' +
    'isLocked forceUnlock held usage ping on',
  LockStoreError: `${ERROR} outcome`,
  MemorySpace: 'size',
  MemoryStore: `${STORE} semaphores latches space size`,
  MultiLease: 'parts of signal lost loss remainingMs',
  PlaceInLine: 'tell mayHaveMissed listen leave',
  QuorumStore: `${STORE} diagnose onRisk onWarning`,
  RedisLockModule: 'forRoot forRootAsync onModuleInit',
  RedisLockTestingModule: 'forRoot onModuleInit',
  RedisStore: `${STORE} semaphores latches address serverTimes diagnose onRisk onWarning`,
  Semaphore: 'key acquire tryAcquire release trySetPermits addPermits availablePermits drainPermits delete',
  StoreFailure: '[hasInstance] name outcome transient passing keyOnly claimOnly',
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
});
