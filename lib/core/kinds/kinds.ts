import { exclusive } from './exclusive.kind.js';
import type { Kind } from './kind.js';
import { permit } from './permit.kind.js';

/** The kinds of lock there are. */
export const KINDS = { exclusive, permit } as const;

export type LockKind = keyof typeof KINDS;

/** What the core knows about a kind. */
export const kindOf = (name: LockKind): Kind => KINDS[name];
