import { violationsIn } from '../../checker/checker.js';
import type { HistoryEvent } from '../../checker/history.js';
import type { Violation } from '../../checker/violation.js';
import type { Plan } from '../plan/plan.js';
import { expectationsFor, simulate, type Variation } from './simulate.js';

/** A run, and what was wrong with it. */
export interface Judged {
  readonly events: readonly HistoryEvent[];
  readonly violations: readonly Violation[];
}

/** Runs a plan and reads its history. */
export const judge = async (plan: Plan, variation?: Variation): Promise<Judged> => {
  const { events } = await simulate(plan, variation);
  return { events, violations: violationsIn(events, expectationsFor(plan)) };
};
