import type { BatchPart } from '../connection/script-batch.js';
import { EXCLUSIVE_BATCH_PARTS } from './exclusive/redis-exclusive.js';
import { FAIR_RELEASING } from './fair/redis-fair.js';

/** What can share a request with others of its tick. */
export const BATCH_PARTS: readonly BatchPart[] = [...EXCLUSIVE_BATCH_PARTS, FAIR_RELEASING];
