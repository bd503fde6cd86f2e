import { describe, expect, it } from 'vitest';
import type { LockError } from '../../../lib/core/errors/lock.errors.js';
import type { Lease } from '../../../lib/core/lease/lease.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import type { LockCall } from '../../../lib/core/settings/lock-call.js';
import type { LockSettingsInput } from '../../../lib/core/settings/lock-settings.js';
import { coreUnderTest, watched } from '../../support/core/core-under-test.js';
import { ObjectStore } from '../../support/core/object-store.js';
import { granted, notExecuted, released, taken, unknown } from '../../support/core/scripted-store.js';
import { settled } from '../../support/core/virtual-runtime.js';

const underTest = (input: LockSettingsInput = {}) => {
  const store = new ObjectStore();
  const core = coreUnderTest(input, store);
  const acquire = (options: Partial<LockCall> = {}) =>
    watched(core.manager.acquire(['k'], core.call(options)));
  const lease = async (): Promise<Lease> => {
    const caller = acquire();
    await store.next('acquire').reply(granted());
    return caller.value!;
  };
  return { ...core, store, acquire, lease };
};

const wrongType = (): StoreFailure => new StoreFailure('WRONGTYPE', 'not-executed', { keyOnly: true });

type Core = ReturnType<typeof underTest>;
type Case = readonly [when: string, code: string, (core: Core) => Promise<unknown>];

const TO_BE_TRIED_AGAIN: readonly Case[] = [
  [
    'the lock stays taken for waitMs',
    'LOCK_TAKEN',
    async ({ acquire, store }) => {
      const caller = acquire({ waitMs: 0 });
      await store.next('acquire').reply(taken());
      return caller.error;
    },
  ],
  [
    'the local queue is full',
    'LOCK_QUEUE_FULL',
    async ({ acquire, lease }) => {
      await lease();
      acquire();
      const caller = acquire();
      await settled();
      return caller.error;
    },
  ],
  [
    'the instance is shutting down',
    'LOCK_SHUTDOWN',
    async ({ acquire, manager }) => {
      void manager.shutDown();
      const caller = acquire();
      await settled();
      return caller.error;
    },
  ],
  ...[notExecuted(), unknown()].map((failure): Case => [
    `the store fails while the lock is acquired (${failure.outcome})`,
    'LOCK_STORE_FAILED',
    async ({ acquire, store }) => {
      const caller = acquire();
      await store.next('acquire').fail(failure);
      return caller.error;
    },
  ]),
  [
    'the store fails while another caller of the process acquires the lock',
    'LOCK_STORE_FAILED',
    async ({ acquire, store }) => {
      acquire();
      const caller = acquire({ waitMs: 0 });
      await store.next('acquire').fail(notExecuted());
      await store.unanswered[0]?.fail(notExecuted());
      return caller.error;
    },
  ],
  [
    'the store fails while permits of a semaphore are acquired',
    'LOCK_STORE_FAILED',
    async ({ manager, store }) => {
      const caller = watched(manager.semaphore('s').acquire(1));
      await settled();
      await store.nextRequest.fail(notExecuted());
      return caller.error;
    },
  ],
  [
    'the store fails while a latch is waited for',
    'LOCK_STORE_FAILED',
    async ({ manager, store }) => {
      const caller = watched(manager.countDownLatch('l').wait());
      await settled();
      await store.nextRequest.fail(notExecuted());
      return caller.error;
    },
  ],
];

const NOT_TO_BE_TRIED_AGAIN: readonly Case[] = [
  [
    'the signal of the caller aborts the wait',
    'LOCK_ABORTED',
    async ({ acquire }) => {
      const caller = acquire({ signal: AbortSignal.abort() });
      await settled();
      return caller.error;
    },
  ],
  [
    'the call is nested, and its kind cannot enter the outer lease',
    'LOCK_NOT_REENTRANT',
    async ({ acquire, lease }) => {
      const caller = acquire({ inside: [await lease()], kind: 'read' });
      await settled();
      return caller.error;
    },
  ],
  [
    'the lock is lost',
    'LOCK_LOST',
    async ({ lease, store, manager }) => {
      const held = await lease();
      void manager.forceUnlock('k');
      await store.next('forceUnlock').reply(true);
      return held.loss;
    },
  ],
  [
    'a lease that was released is used',
    'LOCK_CONFIGURATION',
    async ({ lease, store }) => {
      const held = await lease();
      void held.release();
      await store.next('release').reply(released());
      const caller = watched(held.run(() => undefined));
      await settled();
      return caller.error;
    },
  ],
  [
    'the key is of another type',
    'LOCK_STORE_FAILED',
    async ({ acquire, store }) => {
      const caller = acquire();
      await store.next('acquire').fail(wrongType());
      return caller.error;
    },
  ],
  [
    'the key is of another type, and another caller of the process has asked',
    'LOCK_STORE_FAILED',
    async ({ acquire, store }) => {
      acquire();
      const caller = acquire();
      await store.next('acquire').fail(wrongType());
      return caller.error;
    },
  ],
  [
    'the key of a semaphore is of another type',
    'LOCK_STORE_FAILED',
    async ({ manager, store }) => {
      const caller = watched(manager.semaphore('s').acquire(1));
      await settled();
      await store.nextRequest.fail(wrongType());
      return caller.error;
    },
  ],
  [
    'the store fails while the lock is released',
    'LOCK_STORE_FAILED',
    async ({ lease, store }) => {
      const caller = watched((await lease()).release());
      await store.next('release').fail(notExecuted());
      return caller.error;
    },
  ],
  [
    'the store fails while the lease is extended',
    'LOCK_STORE_FAILED',
    async ({ lease, store }) => {
      const caller = watched((await lease()).extend(60_000));
      await settled();
      await store.next('extend').fail(notExecuted());
      return caller.error;
    },
  ],
  [
    'the store fails while permits of a semaphore are released',
    'LOCK_STORE_FAILED',
    async ({ manager, store }) => {
      const caller = watched(manager.semaphore('s').release(1));
      await settled();
      await store.nextRequest.fail(notExecuted());
      return caller.error;
    },
  ],
  [
    'the instance has shut down before permits of a semaphore are released',
    'LOCK_SHUTDOWN',
    async ({ manager, store }) => {
      await manager.close();
      const caller = watched(manager.semaphore('s').release(1));
      await settled();
      await store.nextRequest.fail(notExecuted());
      return caller.error;
    },
  ],
];

describe('an error is retryable', () => {
  it.each(TO_BE_TRIED_AGAIN)('when %s: %s', async (_when, code, provoke) => {
    const error = (await provoke(underTest({ maxWaiters: 1 }))) as LockError;
    expect(error).toMatchObject({ code, retryable: true });
  });
});

describe('an error is not retryable', () => {
  it.each(NOT_TO_BE_TRIED_AGAIN)('when %s: %s', async (_when, code, provoke) => {
    const error = (await provoke(underTest({ maxWaiters: 1 }))) as LockError;
    expect(error).toMatchObject({ code, retryable: false });
  });
});
