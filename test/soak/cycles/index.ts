import type { Cycle } from '../../support/cycles/cycle.js';
import { LOST_CYCLES } from './lost.cycles.js';
import { NESTED_CYCLES } from './nested.cycles.js';
import { PERMIT_CYCLES } from './permit.cycles.js';
import { PLAIN_CYCLES } from '../../support/cycles/plain.cycles.js';

/** All kinds of cycles. A new one is a function in one of these files. */
export const CYCLES: readonly Cycle[] = [...PLAIN_CYCLES, ...NESTED_CYCLES, ...LOST_CYCLES, ...PERMIT_CYCLES];
