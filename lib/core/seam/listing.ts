import type { KeyState } from './reply.js';

/** Request for one page of `LockStore.list`. */
export interface ListRequest {
  /** Beginning of the keys to list, with the `keyPrefix` of the module. May be empty: all keys. */
  readonly prefix: string;
  /** Cursor of the page before, as the store returned it; undefined for the first page. A caller may have forged it. */
  readonly cursor: string | undefined;
}

/** A key with at least one holder, or with callers in its wait queue. */
export interface ListedKey {
  readonly finalKey: string;
  readonly state: KeyState;
  /** Number of nodes that have the key. Only for a store that is several servers. */
  readonly nodes?: number | undefined;
}

/** One page of `LockStore.list`. */
export interface ListReply {
  /** In any order. May be empty before the end. */
  readonly keys: readonly ListedKey[];
  /** Cursor of the next page: any text that is not empty. Undefined at the end. */
  readonly cursor: string | undefined;
}
