import { createHash } from 'node:crypto';
import { LockKeyError } from '../../core/errors/lock.errors.js';
import type { Claim } from '../../core/seam/claim.js';
import type { AcquireReply, ExtendReply, ReleaseReply } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { checkStoreKey } from '../key-rule.js';
import { joined, raw, sql, type Sql } from './sql.js';

/** The row of a key itself; other rows of the name are permits. */
export const HEAD = raw("member = ''");
/** Microseconds in a millisecond. */
export const US = 1_000;
/**
 * For how long after a release only the first process in the wait queue may take a key. From then on its heir may, too, and
 * after twice the time each process.
 */
export const TURN_US = 250_000;
/** Processes that stand in the wait queue of a key at most; further ones only ask. */
export const MAX_QUEUED = 64;
/** Length of a process in a wait queue, and its first character: up to version 0.2.0 another one. */
export const ID_LENGTH = 13;
export const [ID_START, OLD_ID_START] = [';', ','];
/** Returns the processes in a wait queue. */
export const waitersIn = (queue: string): readonly string[] =>
  (queue.match(/.{13}/gs) ?? []).map((process) => process.slice(1));

/** Longest name in a table, in bytes. */
export const MAX_BYTES = 500;
/** Start of the name of a key that is longer. */
export const DIGEST = 'sha256:';

/** Reads a reply that says nothing. */
export const nothing = (): void => undefined;

export const bytes = (text: string): Buffer => Buffer.from(text);

/** Returns the name of a key in the table: the key, or its digest when it is longer than 500 bytes. */
export const nameOf = (finalKey: string): Buffer => {
  const name = bytes(finalKey);
  if (name.length <= MAX_BYTES) return name;
  return bytes(`${DIGEST}${createHash('sha256').update(name).digest('hex')}`);
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

/** Returns a grant whose last token is `last`. */
export const grantOf = ({ leaseMs, tokens }: Claim, last: number): AcquireReply => ({
  status: 'granted',
  validForMs: leaseMs,
  ...(tokens > 0 && { token: last - tokens + 1, tokens }),
});

/** Returns the replies of claims in their order. Only a row with the name and the owner of a claim is one about it. */
export const repliesOf = <C extends Claim, T>(
  claims: readonly C[],
  rows: readonly Row[],
  read: (row: Row | undefined, claim: C) => T,
): readonly T[] => {
  const found = new Map(rows.map((row) => [`${row['owner']} ${row['name']}`, row]));
  return claims.map((claim) => read(found.get(`${claim.owner} ${nameTextOf(claim.finalKey)}`), claim));
};

/** Returns the reply to a renewal, from the rest in µs of a hold that is there. A row that others have locked was skipped. */
export const extendedRow = (row: Row | undefined, isLocked: boolean): ExtendReply => {
  if (!row) return { status: 'lost' };
  if (isLocked) return { status: 'failed', cause: LOCKED };
  return { status: 'held', validForMs: Math.floor(Number(row['left_us']) / US) };
};

/** Returns the reply to one of several releases. A row without `waiting` is held, and was skipped. */
export const releasedRow = (row: Row | undefined): ReleaseReply | undefined =>
  row?.['waiting'] === null
    ? undefined
    : { wasHeld: row !== undefined, othersWaiting: isTrue(row?.['waiting']) };

const LOCKED = new StoreFailure('another transaction has locked the row', 'not-executed', {
  ...{ transient: true, keyOnly: true },
});
