import type { Grant } from '../../../lib/core/seam/grant.js';

/** A message: it is this owner's turn. */
export interface GrantMessage {
  readonly key: string;
  readonly owner: string;
  readonly grant: Grant;
}

/** The channel on which a process hears of the turns of all owners that it names. */
export const grantChannel = (owner: string): string => `turns of ${owner.slice(0, owner.lastIndexOf(':'))}`;
