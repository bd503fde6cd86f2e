import { invalidOption } from '../core/settings/option-checks.js';
import type { ListRequest } from '../core/seam/listing.js';

/** Maximum number of keys on a page of a store whose keys have an order. */
export const PAGE_KEYS = 100;

/** Requests of a page that are under way at once, in a store that sends them behind each other without a wait. */
const AT_ONCE = 100;

/**
 * Throws the error for a cursor that the store did not return.
 *
 * @throws {LockConfigurationError}
 */
export const invalidCursor = (): never =>
  invalidOption('cursor', 'the cursor of an earlier page with the same prefix', 'another text');

/**
 * Returns the name with which a page begins. The cursor of a store whose keys have an order is the first key of the next
 * page.
 *
 * @throws {LockConfigurationError} for a cursor that is no such key
 */
export const firstOnPage = ({ prefix, cursor = prefix }: ListRequest): string =>
  cursor.startsWith(prefix) ? cursor : invalidCursor();

/** A part of the keys, in their order, and the cursor of the next part. */
export interface KeyPage {
  readonly page: readonly string[];
  readonly cursor: string | undefined;
}

/**
 * Parts keys that are in order, of which there may be one more than on a page. The first key without the prefix ends
 * the list.
 */
export const keyPage = (sorted: readonly string[], { prefix }: ListRequest): KeyPage => {
  const end = sorted.findIndex((key) => !key.startsWith(prefix));
  const found = end === -1 ? sorted : sorted.slice(0, end);
  return { page: found.slice(0, PAGE_KEYS), cursor: found[PAGE_KEYS] };
};

/** Returns the page of a request from all keys, which have no order. */
export const keyPageOf = (all: Iterable<string>, request: ListRequest): KeyPage => {
  const first = firstOnPage(request);
  const later = [...all].filter((key) => key >= first && key.startsWith(request.prefix));
  return keyPage(later.sort(), request);
};

/**
 * Resolves with what is found at each key, without the keys at which nothing is. Only some requests are under way at
 * once.
 */
export const foundAt = async <T>(
  keys: readonly string[],
  look: (finalKey: string) => Promise<T | null>,
  atOnce = AT_ONCE,
): Promise<readonly T[]> => {
  const found: T[] = [];
  for (let at = 0; at < keys.length; at += atOnce) {
    const replies = await Promise.all(keys.slice(at, at + atOnce).map(look));
    found.push(...replies.filter((reply) => reply !== null));
  }
  return found;
};
