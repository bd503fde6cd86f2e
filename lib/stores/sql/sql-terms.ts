import { createHash } from 'node:crypto';
import { LockKeyError } from '../../core/errors/lock.errors.js';
import type { Claim } from '../../core/seam/claim.js';
import type { ExtendReply } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { checkStoreKey } from '../key-rule.js';
import { joined, raw, sql, type Sql } from './sql.js';

/** The row of a key itself; other rows of the name are permits. */
export const HEAD = raw("member = ''");
/** Microseconds in a millisecond. */
export const US = 1_000;
/** For how long after a release only the first process in the wait queue may take a key. */
export const TURN_US = 250_000;
/** Processes that stand in the wait queue of a key at most; further ones only ask. */
export const MAX_QUEUED = 64;
/** Longest name in a table, in bytes. */
export const MAX_BYTES = 500;

/** Reads a reply that says nothing. */
export const nothing = (): void => undefined;

export const bytes = (text: string): Buffer => Buffer.from(text);

/** Returns the name of a key in the table: the key, or its digest when it is longer than 500 bytes. */
export const nameOf = (finalKey: string): Buffer => {
  const name = bytes(finalKey);
  if (name.length <= MAX_BYTES) return name;
  return bytes(`sha256:${createHash('sha256').update(name).digest('hex')}`);
};

/** Returns the name of a key in replies. */
export const nameTextOf = (finalKey: string): string => nameOf(finalKey).toString();

/** @throws {LockKeyError} for a key with a NUL, which some databases cannot store */
export const checkSqlKey = (finalKey: string): void => {
  checkStoreKey(finalKey);
  if (!finalKey.includes('\0')) return;
  throw new LockKeyError('it has a NUL character, which a database cannot store.');
};

/** Returns a list of names. */
export const listOf = (names: readonly Buffer[]): Sql => {
  const parts = names.map((name) => sql`${name}`);
  return joined(parts, ', ');
};

/** A row of a reply. Each value is text. */
export type Row = Readonly<Record<string, string | null>>;

export const isTrue = (value: string | null | undefined): boolean => value === 't' || value === '1';

/** Returns a rest of time in ms; 0 when it is over. */
export const msOf = (us: string | number | bigint | null | undefined): number =>
  Math.max(0, Math.ceil(Number(us) / US));

/**
 * Returns the replies to a renewal.
 *
 * @param rows name, owner and rest in µs of each hold that is there
 * @param isLocked returns whether a row was skipped, because others have locked it
 */
export const extendRepliesOf = <R>(
  claims: readonly Claim[],
  rows: readonly (readonly [name: string, owner: string, leftUs: R])[],
  isLocked: (leftUs: R, claim: Claim) => boolean,
): readonly ExtendReply[] => {
  const found = new Map(rows.map(([name, owner, leftUs]) => [`${owner} ${name}`, leftUs]));
  return claims.map((claim): ExtendReply => {
    const leftUs = found.get(`${claim.owner} ${nameTextOf(claim.finalKey)}`);
    if (leftUs === undefined) return { status: 'lost' };
    if (isLocked(leftUs, claim)) return { status: 'failed', cause: LOCKED };
    return { status: 'held', validForMs: Math.floor(Number(leftUs) / US) };
  });
};

const LOCKED = new StoreFailure('another transaction has locked the row', 'not-executed', {
  ...{ transient: true, keyOnly: true },
});
