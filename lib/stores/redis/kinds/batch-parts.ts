import type { BatchPart } from '../connection/script-batch.js';
import { EXCLUSIVE_BATCH_PARTS } from './exclusive/redis-exclusive.js';
import { FAIR_RELEASING } from './fair/redis-fair.js';

/** Scripts that can share a request with others of their tick. */
export const BATCH_PARTS: readonly BatchPart[] = [...EXCLUSIVE_BATCH_PARTS, FAIR_RELEASING];
