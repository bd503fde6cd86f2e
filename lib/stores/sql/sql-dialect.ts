import type { Claim, ExclusiveClaim, PermitClaim } from '../../core/seam/claim.js';
import type { ReleaseOptions, StoreHost } from '../../core/seam/lock-store.js';
import type { PollTraits } from '../../core/seam/kind-traits.js';
import type {
  AcquireReply,
  ExtendReply,
  KeyState,
  PermitState,
  ReleaseReply,
} from '../../core/seam/reply.js';
import type { Sight, WakeUps } from './places.js';
import type { SqlSession, Statement, Together } from './sql.js';

/** Sends a statement on one of the connections. */
export type RunStatement = <T>(statement: Statement<T>) => Promise<T>;

/** What is known of the callers of this process that wait for a key. */
export interface Waiting {
  /** Whether further callers wait: then this process stays in the wait queue after a grant. */
  readonly othersWait: boolean;
}

/** The row of a key itself. */
export interface KeyRow {
  readonly name: string;
  /** Whether the key may have a holder, or has waiters that live. */
  readonly isLive: boolean;
}

/** Statements for one kind of lock. */
export interface KindStatements<C extends Claim> {
  /** Acquires the key, or enters its wait queue. */
  acquire(claim: C, process: Waiting): Statement<AcquireReply & Partial<Sight>>;
  /** Takes keys that are free and for which no process waits, before {@link acquire} is asked. */
  readonly free?: Together<C, AcquireReply>;
  /** Replies in the order of the claims. */
  extend(claims: readonly C[]): Statement<readonly ExtendReply[]>;
  release(claim: C, how: ReleaseOptions): Statement<ReleaseReply>;
  /** Releases several keys. Replies only about those that were held. */
  readonly releases?: Together<C, ReleaseReply>;
  /** The same with `keepForMs`, which is the `leaseMs` of these claims. Never sent together with other releases. */
  readonly keeps?: Together<C, ReleaseReply>;
  /** See `KindStore.peekMany`. */
  peek(claims: readonly C[]): Statement<readonly Sight[]>;
  /** Messages beside the polling. Undefined without any. */
  readonly wakeUps?: WakeUps | undefined;
}

/** Messages between processes. */
export interface NoteMessages {
  /** See `ProcessNotes.listen`. */
  listen(row: string, listener: (text: string) => void): () => void;
  /** Undefined for a text that is too long. */
  send(row: string, text: string): Statement<void> | undefined;
}

/** Statements for notes of processes, by the name of their row. */
export interface NoteStatements {
  /** Undefined where no message can be received. */
  readonly messages?: NoteMessages | undefined;
  write(row: string, text: string, ttlMs: number): Statement<void>;
  /** Returns the texts by the name of their row. */
  read(rows: readonly string[]): Statement<ReadonlyMap<string, string>>;
  remove(rows: readonly string[]): Statement<void>;
}

/** What a store on a database needs of that database. */
export interface SqlDialect {
  /** Name for messages. */
  readonly name: string;
  /** Gets warnings, once the store is being opened. */
  storeHost?: StoreHost | undefined;
  readonly poll: PollTraits;
  readonly exclusive: KindStatements<ExclusiveClaim>;
  readonly permit: KindStatements<PermitClaim>;
  readonly notes: NoteStatements;
  /** Returns also a key that has only waiters. */
  inspect(finalKey: string): Statement<KeyState | null>;
  /** Returns the first `count` keys from this name on, in the order of their bytes. */
  keysFrom(name: string, count: number): Statement<readonly KeyRow[]>;
  permits(finalKey: string): Statement<PermitState | null>;
  forceUnlock(finalKey: string): Statement<boolean>;
  /** Removes this process from the wait queue of a key. Replies whether others may wait for its message. */
  leave(finalKey: string): Statement<boolean>;
  /** Deletes rows that no lock needs any more, and expired notes. Resolves with how many. */
  sweep(run: RunStatement): Promise<number>;
  ping(): Statement<void>;
  /**
   * Fails at once while others have locked a row of a key. Sent before a statement is repeated that was locked out: it
   * would wait for the row again, and its lane with it. Undefined where no statement waits for a row.
   */
  probe?(finalKey: string): Statement<void>;
  /** Opens a connection. Rejects with a `SqlFailure`. */
  connect(): Promise<SqlSession>;
  /**
   * Resolves with true when a connection has ended in the server, too: what was under way on it comes no more. Ends it
   * there if that is possible.
   */
  settle(failed: SqlSession, run: RunStatement): Promise<boolean>;
  /**
   * Checks the login, the connections and the settings of the server.
   *
   * @throws {LockConfigurationError} when locks cannot work
   */
  checkServer(run: RunStatement): Promise<void>;
  /**
   * Checks the table, its version and the rights; resolves with warnings. Later ones go to `storeHost`. `alone` sends on a
   * connection of its own.
   *
   * @throws {LockConfigurationError} when locks cannot work
   */
  check(run: RunStatement, alone: RunStatement): Promise<readonly string[]>;
  /**
   * Creates the table if it is missing.
   *
   * @throws {LockConfigurationError} when that is not allowed
   */
  migrate(run: RunStatement): Promise<void>;
  /** Ends the connections for notifications. */
  close(): void;
}
