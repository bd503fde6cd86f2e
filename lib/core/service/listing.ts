import type { CoreContext } from '../context/core-context.js';
import { LockConfigurationError } from '../errors/lock.errors.js';
import type { ListRequest } from '../seam/listing.js';
import type { InspectedKey } from '../holders/holders.js';
import { checkObject, invalidOption, reading } from '../settings/option-checks.js';
import { checkNames, type Names } from '../settings/option-names.js';

/** Options of `locks.list()`. */
export interface ListOptions {
  /** Beginning of the keys to list, without the `keyPrefix` of the module. No character is special. Default: all keys. */
  readonly prefix?: string | undefined;
  /** `cursor` of the page before. Default: the first page. */
  readonly cursor?: string | undefined;
}

/** A key that has a holder in any process, or callers in its wait queue: then `holders` may be empty. */
export interface ListedLock extends InspectedKey {
  /** Key without the `keyPrefix` of the module. */
  readonly key: string;
  /** Number of nodes that have the key. Only in a quorum: fewer than a majority are no lock, but the rest of one. */
  readonly nodes?: number;
}

/** One page of `locks.list()`. */
export interface LockList {
  /** In no promised order. May be empty before the end. */
  readonly locks: readonly ListedLock[];
  /** Pass it to the next call. Undefined at the end. */
  readonly cursor: string | undefined;
}

type ListingCore = Pick<CoreContext, 'holders' | 'requests' | 'settings' | 'store'>;

const NAMES: Names<ListOptions> = { prefix: true, cursor: true };

/** Throws the error for a cursor that the method did not return. */
const invalidCursor = (cursor: unknown): never =>
  invalidOption('cursor', 'the cursor of an earlier page with the same prefix', cursor);

const encoded = (cursor: string): string => Buffer.from(cursor).toString('base64url');

/** Returns the cursor of the store. A caller may pass anything. */
const decoded = (cursor: unknown): string | undefined => {
  if (cursor === undefined) return undefined;
  if (typeof cursor !== 'string' || cursor === '') return invalidCursor(cursor);
  const text = Buffer.from(cursor, 'base64url').toString();
  return encoded(text) === cursor ? text : invalidCursor(cursor);
};

/**
 * Returns the request for a page.
 *
 * @throws LockConfigurationError naming the invalid option
 */
export const resolveList = (options: ListOptions | undefined, keyPrefix: string): ListRequest =>
  reading('options', () => {
    if (options === undefined) return { prefix: keyPrefix, cursor: undefined };
    checkObject('options', 'an object such as { prefix: "order:" }', options);
    checkNames(options, 'list', NAMES);
    const { prefix = '', cursor } = options;
    if (typeof prefix !== 'string') return invalidOption('prefix', 'well-formed text', prefix);
    // Without the prefix, which is part of keys.
    if (!prefix.isWellFormed())
      throw new LockConfigurationError(
        'prefix must be well-formed text, but has half a surrogate pair in it.',
      );
    return { prefix: keyPrefix + prefix, cursor: decoded(cursor) };
  });

/**
 * Resolves with one page of the keys that have a holder, or callers in their wait queue.
 *
 * @throws LockConfigurationError for an invalid option, and when the store cannot list its locks
 */
export const listPage = async (
  { holders, requests, settings: { keyPrefix }, store }: ListingCore,
  options: ListOptions | undefined,
): Promise<LockList> => {
  const request = resolveList(options, keyPrefix);
  if (!store.list) throw new LockConfigurationError(`${store.name} cannot list its locks.`);
  const { keys, cursor } = await requests.request(undefined, 'listing its locks', () => store.list!(request));
  const locks = keys.map(({ finalKey, state, nodes }) => ({
    key: finalKey.slice(keyPrefix.length),
    ...state,
    ...(nodes !== undefined && { nodes }),
  }));
  return { locks: await holders.describe(locks), cursor: cursor === undefined ? undefined : encoded(cursor) };
};
