import { exclusive } from './exclusive.kind.js';
import { fair } from './fair.kind.js';
import type { Kind } from './kind.js';
import { permit } from './permit.kind.js';
import { read } from './read.kind.js';
import { write } from './write.kind.js';

export const KINDS = { exclusive, fair, permit, read, write } as const;

export type LockKind = keyof typeof KINDS;

export const kindOf = (name: LockKind): Kind => KINDS[name];
