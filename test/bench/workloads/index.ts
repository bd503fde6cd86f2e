import type { Workload } from '../workload.js';
import { cycles } from './cycles.js';
import { decorator } from './decorator.js';
import { freeKeys } from './free-keys.js';
import { heldLeases } from './held-leases.js';
import { hotKey } from './hot-key.js';
import { waiting } from './waiting.js';

/** All workloads, in the order of the report: what users have comes first. */
export const workloads: readonly Workload[] = [hotKey, waiting, freeKeys, decorator, heldLeases, cycles];
