import { LockStoreError } from 'nest-redis-lock';
import { expect } from 'vitest';
import { until } from '../async.js';
import type { OpenLocks } from './open-locks.js';

/** Short, so that tests are quick; every wait in them is far longer. */
export const COMMAND_TIMEOUT_MS = 400;
/** What a busy machine may add before a test says that something did not end with the command time-out. */
const SLACK_MS = 2_000;

const chainOf = (error: unknown): string =>
  error instanceof Error ? `${error.message} <- ${chainOf(error.cause)}` : String(error);

/** Expects `LockStoreError` with a cause, soon after the command time-out at the latest. Returns it. */
export async function storeFailure(request: Promise<unknown>, cause: RegExp): Promise<LockStoreError> {
  const startedAt = performance.now();
  const error = await request.then(
    (value) => expect.fail(`it did not fail, but gave ${String(value)}`),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(LockStoreError);
  const failure = error as LockStoreError;
  expect(performance.now() - startedAt).toBeLessThan(COMMAND_TIMEOUT_MS + SLACK_MS);
  expect(failure.code).toBe('LOCK_STORE_FAILED');
  expect(failure.cause).toBeInstanceOf(Error);
  expect(chainOf(failure)).toMatch(cause);
  return failure;
}

/** Expects the same of everything that asks the store for a key, and that no section runs. */
export async function everythingFails({ locks }: OpenLocks, key: string, cause: RegExp): Promise<void> {
  const waitMs = 20_000;
  let ran = false;
  const results = await Promise.all([
    storeFailure(locks.acquire(key, { waitMs }), cause),
    storeFailure(locks.acquire(key, { waitMs }), cause),
    storeFailure(locks.tryAcquire(`${key}-try`), cause),
    storeFailure(locks.tryAcquire(`${key}-try`, { waitMs: 0 }), cause),
    storeFailure(
      locks.withLock(`${key}-section`, { waitMs }, () => void (ran = true)),
      cause,
    ),
    storeFailure(
      locks.withLock([`${key}-a`, `${key}-b`], { waitMs }, () => void (ran = true)),
      cause,
    ),
    storeFailure(locks.inspect(key), cause),
    storeFailure(locks.isLocked(key), cause),
    storeFailure(locks.forceUnlock(key), cause),
    storeFailure(locks.ping(), cause),
  ]);
  expect(results.slice(0, 6).map((failure) => failure.key)).toEqual([
    key,
    key,
    `${key}-try`,
    `${key}-try`,
    `${key}-section`,
    `${key}-a`,
  ]);
  expect(ran).toBe(false);
}

/** Resolves once the key can be locked; each try ends by itself. */
export const worksAgain = ({ locks }: OpenLocks, key: string): Promise<unknown> =>
  until(() => locks.withLock(key, { waitMs: 2_000 }, () => true), { what: 'locks work again' });

/** One outage is announced once, and its end once. */
export function expectOneOutage({ events, log }: OpenLocks): void {
  expect(events('store-down')).toEqual([{ cause: expect.any(Error) as Error }]);
  expect(events('store-up')).toEqual([{ downMs: expect.any(Number) as number }]);
  expect(log.filter((line) => line.includes('does not work'))).toHaveLength(1);
  expect(log.filter((line) => line.includes('works again'))).toHaveLength(1);
}
