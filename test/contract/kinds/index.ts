import type { LockKind } from '../../../lib/core/kinds/kinds.js';
import { exclusiveContract } from './exclusive.contract.js';
import { fairContract } from './fair.contract.js';
import type { KindContract } from './kind-under-contract.js';
import { permitContract } from './permit.contract.js';
import { readContract, writeContract } from './read-write.contract.js';

/** One contract for each kind: the compiler names the one that is missing. */
export const KIND_CONTRACTS: Readonly<Record<LockKind, KindContract>> = {
  exclusive: exclusiveContract,
  fair: fairContract,
  permit: permitContract,
  read: readContract,
  write: writeContract,
};
