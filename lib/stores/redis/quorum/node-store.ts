import type { LockKind } from '../../../core/kinds/kinds.js';
import type { Claim, ClaimOf } from '../../../core/seam/claim.js';
import type { Proposal } from '../../proposed-token.js';
import type { RedisAddress } from '../connection/redis-client.js';
import type { KindStore, LockStore, Watch, WatchListener } from '../../../core/seam/lock-store.js';

/*
 * The port of a quorum to the store of one node: the members that `LockStore` lacks. Redis stores have them. Stores in
 * memory have them, too, for tests.
 */

/** A claim at one node. The node must not queue it, nor grant the key to a queued claim: all nodes have to agree. */
export interface AtNode extends Proposal {
  readonly noQueue?: boolean;
}

/** One kind of lock at one node. */
export interface NodeKind<C extends Claim = Claim> extends KindStore<C> {
  /**
   * Makes every later token of the key larger than `token`, if the claim's owner has the key now. Resolves with whether
   * it has. A kind without tokens has no such method.
   */
  commit?(claim: C, token: number): Promise<boolean>;
  /** Redis publishes, and so do stores in memory. */
  watch(claim: C, listener: WatchListener): Watch;
}

/** The kinds of a store that has all of them. */
export type AllNodeKinds = { readonly [K in LockKind]: NodeKind<ClaimOf<K>> };

/** Times of a server, as the server reports them. */
export interface ServerTimes {
  /** Minimum uptime in ms; holds that are older may have been lost in a restart. */
  readonly upForMs: number;
  /** Wall clock, in ms since 1970. */
  readonly clockMs: number;
  /** Name of this run of the server: two stores with the same one are on one server. */
  readonly serverId?: string | undefined;
  /**
   * Number of tokens for each ms of the wall clock, if tokens come from it. A token further ahead shows that the clock
   * was set back, or that a larger token was known already. Left out if tokens do not depend on the clock.
   */
  readonly tokensPerMs?: number | undefined;
}

/** The store of one node. */
export interface NodeStore extends LockStore {
  readonly kinds: { readonly [K in LockKind]?: NodeKind };
  /** Address of its server. Left out by a store in memory. */
  readonly address?: RedisAddress;
  /** Resolves with the uptime and the clock of the server. Without it, a restart goes unnoticed. */
  serverTimes?(): Promise<ServerTimes>;
  /** See {@link LockStore.diagnose}. `noQueue`: claims use no wait queue here. */
  diagnose?(options?: AtNode): Promise<readonly string[]>;
}
