import type { LockKind } from '../../../core/kinds/kinds.js';
import type { ClaimOf } from '../../../core/seam/claim.js';
import { heldState, type KeyState, type PermitState } from '../../../core/seam/reply.js';
import type { Commands } from '../connection/commands.js';
import { RedisFailure, isNotPermitted, isWrongType } from '../connection/redis-failure.js';
import { firstOf, keysAndArgs, type BatchPart, type PartRun } from '../connection/script-batch.js';
import {
  EXCLUSIVE_BATCH_PARTS,
  EXCLUSIVE_FORCING,
  type RedisExclusive,
} from './exclusive/redis-exclusive.js';
import { FAIR_FORCING, FAIR_RELEASING } from './fair/redis-fair.js';
import { PERMIT_FORCING, type RedisPermit } from './permit/redis-permit.js';
import { READ_WRITE_FORCING } from './read-write/redis-read-write.js';
import type { RedisKind } from './redis-link.js';
import { readDone } from './numbers.js';
import type { QueueKind } from '../redis-keys.js';

/** The implementation of every kind of lock. The compiler names a missing kind. */
export type RedisKinds = { readonly [K in LockKind]: RedisKind<ClaimOf<K>> } & {
  readonly exclusive: RedisExclusive;
  readonly permit: RedisPermit;
};

/** Scripts that can share a request with others of their tick. */
export const BATCH_PARTS: readonly BatchPart[] = [...EXCLUSIVE_BATCH_PARTS, FAIR_RELEASING];

export const FORCE_UNLOCK = firstOf([FAIR_FORCING, ...EXCLUSIVE_FORCING, READ_WRITE_FORCING, PERMIT_FORCING]);

/** Requests for a key whose kind of lock is unknown. */
export class AnyKind {
  constructor(
    private readonly commands: Commands,
    private readonly kinds: RedisKinds,
    /** Whether a string is a hold of another library. */
    private readonly countsStrings: boolean,
  ) {}

  inspect(finalKey: string): Promise<KeyState | null> {
    return this.stateOf(finalKey, isForeignType);
  }

  /**
   * Returns the state of a key that a list has found. Null also for a value that is no lock, and for one of a kind that
   * this process does not use and its Redis user may not read.
   */
  listed(finalKey: string): Promise<KeyState | null> {
    const isUnreadable = (failure: unknown): boolean => isForeignType(failure) || isNotPermitted(failure);
    return this.stateOf(finalKey, isUnreadable).catch((failure: unknown) => {
      if (isForeignType(failure)) return null;
      throw failure;
    });
  }

  /** Returns the state of a key that has no holder, but callers in the wait queue of a kind. */
  async waitedFor(finalKey: string, kind: QueueKind): Promise<KeyState | null> {
    const state = await this.asked(this.kinds[kind], finalKey);
    return state && !heldState(state) ? state : null;
  }

  /** @param isForeign whether a kind that this process does not use has said that the value is none of its own */
  private async stateOf(
    finalKey: string,
    isForeign: (failure: unknown) => boolean,
  ): Promise<KeyState | null> {
    const state = await this.lookAt(finalKey, isForeign);
    if (state?.heldAs) return this.withWaiters(finalKey, state);
    if (state?.kind !== 'fair' && state?.kind !== 'read' && state?.kind !== 'write') return state;
    const { [state.kind]: kind } = this.kinds;
    if (kind.inUse) return state;
    return (await this.moreFrom(kind, finalKey)) ?? state;
  }

  /** Waiters of all kinds may be queued behind a lock of another library. */
  private async withWaiters(finalKey: string, state: KeyState): Promise<KeyState> {
    const { fair, read } = this.kinds;
    let found: KeyState | null = state.waiting.length > 0 ? state : null;
    for (const kind of [fair, read]) if (!kind.inUse) found ??= await this.moreFrom(kind, finalKey);
    return found ?? state;
  }

  /** Asks a kind that was not asked: this process takes no such locks, and its Redis user may lack the right. */
  private async moreFrom(kind: RedisKind<never>, finalKey: string): Promise<KeyState | null> {
    return heldState(await this.asked(kind, finalKey));
  }

  private asked(kind: RedisKind<never>, finalKey: string): Promise<KeyState | null> {
    const { countsStrings } = this;
    return kind.inspect(finalKey, { countsStrings }).catch((failure: unknown) => {
      if (isNotPermitted(failure) || isForeignType(failure)) return null;
      throw failure;
    });
  }

  /** See `LockStore.permits`. */
  permits(finalKey: string): Promise<PermitState | null> {
    return this.kinds.permit.permits(finalKey);
  }

  /**
   * Ends whatever hold is there. The kinds that this process uses share one script: a waiter woken by a first script
   * might acquire before a second script arrives, which would end that hold, too. The other kinds are asked only when
   * none of these knows the value, because the Redis user may lack the right.
   */
  async forceUnlock(finalKey: string): Promise<boolean> {
    const { exclusive, fair } = this.kinds;
    const before = fair.inUse ? [fair.forcing(finalKey)] : [];
    const after = this.others(true).map((kind) => kind.forcing(finalKey));
    try {
      return await exclusive.forceUnlock(finalKey, (own) => this.runFirst([...before, own, ...after]));
    } catch (failure) {
      if (!isForeignType(failure)) throw failure;
      // A lock of another library is its own to release.
      if (this.countsStrings && (await this.inspect(finalKey))?.heldAs === 'foreign') return false;
      for (const kind of this.others(false)) {
        try {
          return await this.runFirst([kind.forcing(finalKey)]);
        } catch (other) {
          if (!isForeignType(other)) throw other;
        }
      }
      throw failure;
    }
  }

  private runFirst(forcing: readonly PartRun[]): Promise<boolean> {
    const [one] = forcing;
    if (forcing.length > 1) return this.commands.run(FORCE_UNLOCK, ...keysAndArgs(forcing), readDone);
    return this.commands.run(one!.part.script, one!.keys, one!.args, readDone);
  }

  /**
   * Asks each kind for its view of the value. Kinds that this process uses are asked at once, so that the requests keep
   * their place among earlier and later ones. The other kinds are asked only when none of these knows the value,
   * because the Redis user may lack the right. Resolves with the view of the kind that found something.
   */
  private async lookAt(finalKey: string, isForeign: (failure: unknown) => boolean): Promise<KeyState | null> {
    const { exclusive, fair } = this.kinds;
    const { countsStrings } = this;
    const request = (kind: RedisKind<never>): Promise<KeyState | null> =>
      kind.inspect(finalKey, { countsStrings }).then(heldState);
    try {
      return await firstReply([...this.others(true), ...(fair.inUse ? [fair] : []), exclusive].map(request));
    } catch (failure) {
      // The value of a fair lock has the type of an exclusive one, and the exclusive kind was asked already.
      const others = this.others(false);
      if (!isForeignType(failure) || others.length === 0) throw failure;
      return firstReply(others.map(request)).catch((other: unknown) => {
        throw isForeign(other) ? failure : other;
      });
    }
  }

  /** Returns the kinds with another type of value than exclusive and fair locks: either the used or the unused ones. */
  private others(inUse: boolean): readonly RedisKind<never>[] {
    const { read, write, permit } = this.kinds;
    return [...new Set<RedisKind<never>>([read, write, permit])].filter((kind) => kind.inUse === inUse);
  }
}

/** Resolves with the first state found. If all fail, prefers another failure than a wrong type. */
const firstReply = async <T>(requested: readonly Promise<T>[]): Promise<T> => {
  const outcomes = await Promise.allSettled(requested);
  const replies = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  if (replies.length > 0) return replies.find(Boolean) ?? replies[0]!;
  const failures = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason as Error] : []));
  throw failures.find((failure) => !isForeignType(failure)) ?? failures[0]!;
};

/** Returns whether the key has a value of a type that the kind does not know. */
const isForeignType = (failure: unknown): boolean =>
  failure instanceof RedisFailure && failure.cause instanceof Error && isWrongType(failure.cause);
