import * as billing from 'billing';
import * as lib from 'nest-redis-lock';
import * as fencing from 'nest-redis-lock/fencing';
import * as redis from 'nest-redis-lock/redis';
import * as store from 'nest-redis-lock/store';

/** The library as each of its builds has it. */
export const libraries = {
  esm: { ...lib, ...fencing, ...redis, ...store },
  cjs: { ...billing.lib, ...billing.fencing, ...billing.redis, ...billing.store },
};
export type Build = keyof typeof libraries;

const ERRORS = [
  'LockAbortedError',
  'LockConfigurationError',
  'LockError',
  'LockKeyError',
  'LockLostError',
  'LockNotAcquiredError',
  'LockStoreError',
  'StoreFailure',
] as const;

/** What `error` is an instance of, for each build. */
export const kindsOf = (error: unknown): Record<Build, readonly string[]> => ({
  esm: ERRORS.filter((name) => error instanceof libraries.esm[name]),
  cjs: ERRORS.filter((name) => error instanceof libraries.cjs[name]),
});

/** What `work` fails with. */
export const failureOf = async (work: () => unknown): Promise<unknown> => {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error('it was expected to fail');
};

/** The folder a build's Nest layer runs from, found in the stack of an error it throws. */
export const folderOf = (build: Build): string | undefined => {
  try {
    libraries[build].RedisLockModule.forRoot(undefined as never);
  } catch (error) {
    return /nest-redis-lock\/dist\/(esm|cjs)\//.exec((error as Error).stack ?? '')?.[1];
  }
  return undefined;
};

/** Names of the functions and classes that the library exports: those that both builds share, and those they do not. */
export const exported = (): Record<'shared' | 'separate', readonly string[]> => {
  const { esm, cjs } = libraries;
  const names = (Object.keys(esm) as (keyof typeof esm)[]).filter((name) => typeof esm[name] === 'function');
  return {
    shared: names.filter((name) => esm[name] === cjs[name]).sort(),
    separate: names.filter((name) => esm[name] !== cjs[name]).sort(),
  };
};
