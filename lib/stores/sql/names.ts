import { createHash } from 'node:crypto';
import { LockKeyError } from '../../core/errors/lock.errors.js';
import { checkStoreKey } from '../key-rule.js';

/** Longest name in a table, in bytes. */
const MAX_BYTES = 500;

/** Returns the name of a key in the table: the key, or its digest when it is longer than 500 bytes. */
export const nameOf = (finalKey: string): Buffer => {
  const name = Buffer.from(finalKey);
  if (name.length <= MAX_BYTES) return name;
  return Buffer.from(`sha256:${createHash('sha256').update(name).digest('hex')}`);
};

/** @throws {LockKeyError} for a key with a NUL, which some databases cannot store */
export const checkSqlKey = (finalKey: string): void => {
  checkStoreKey(finalKey);
  if (!finalKey.includes('\0')) return;
  throw new LockKeyError('it has a NUL character, which a database cannot store.');
};
