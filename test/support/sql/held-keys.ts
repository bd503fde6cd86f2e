import type { ExtendReply } from '../../../lib/core/seam/reply.js';
import type { SqlStore } from '../../../lib/stores/sql/sql.store.js';
import { claimFor } from '../stores/harness.js';
import { newKey, rowName } from './sql-lab.js';

/** Keys that a store holds, and their renewal as one request. */
export interface HeldKeys {
  readonly keys: readonly [string, ...string[]];
  extend(): Promise<readonly ExtendReply[]>;
}

/** Acquires five new keys of a kind. */
export const holdFive = async ({ kinds }: SqlStore, kind: 'exclusive' | 'permit'): Promise<HeldKeys> => {
  const first = newKey();
  const keys = [first, newKey(), newKey(), newKey(), newKey()] as const;
  const asPermit = kind === 'permit' && { kind, tokens: 0, of: 1 };
  const claims = keys.map((key) => ({ ...claimFor(rowName(key)), ...asPermit }) as never);
  for (const claim of claims) await kinds[kind].acquire(claim);
  return { keys, extend: () => kinds[kind].extendMany(claims) };
};
