import { EXPECTATIONS, type Expectations } from './expectations.js';
import { inOrder, type HistoryEvent } from './history.js';
import { Past } from './past.js';
import { afterwards } from './rules/afterwards.rule.js';
import { busy } from './rules/busy.rule.js';
import { entry } from './rules/entry.rule.js';
import { errors } from './rules/errors.rule.js';
import { exclusion } from './rules/exclusion.rule.js';
import { failover } from './rules/failover.rule.js';
import { foundation } from './rules/foundation.rule.js';
import { latch } from './rules/latch.rule.js';
import { leftovers } from './rules/leftovers.rule.js';
import { limit } from './rules/limit.rule.js';
import { loss } from './rules/loss.rule.js';
import { minimum } from './rules/minimum.rule.js';
import { overtaking } from './rules/overtaking.rule.js';
import { promptness } from './rules/promptness.rule.js';
import { register } from './rules/register.rule.js';
import type { Rule } from './rules/rule.js';
import { semaphore } from './rules/semaphore.rule.js';
import { terms } from './rules/terms.rule.js';
import { tokens } from './rules/tokens.rule.js';
import { handOffBatch } from './rules/hand-off-batch.rule.js';
import { waiting } from './rules/waiting.rule.js';
import type { Violation } from './violation.js';

const RULES: readonly Rule[] = [
  exclusion,
  limit,
  foundation,
  entry,
  terms,
  minimum,
  tokens,
  handOffBatch,
  register,
  waiting,
  promptness,
  overtaking,
  busy,
  loss,
  semaphore,
  latch,
  errors,
  leftovers,
  afterwards,
  failover,
];

/** Reads a history and says what was wrong in it, first things first. */
export const violationsIn = (
  events: readonly HistoryEvent[],
  expectations: Expectations = EXPECTATIONS,
): Violation[] => {
  const past = new Past(inOrder(events));
  return RULES.flatMap((rule) => [...rule(past, expectations)]).sort((a, b) => a.at - b.at);
};
