import { exclusion } from '../../checker/rules/exclusion.rule.js';
import { inOrder, type HistoryEvent } from '../../checker/history.js';
import { Past } from '../../checker/past.js';
import { LAB_EXPECTATIONS } from './expectations.js';
import { withForced } from './forced-open.js';

/**
 * How often two believed in the same lock, whether or not that could happen there: as if every server always stood by what it
 * has said. A lock that was forced open is not counted.
 */
export const overlapsIn = (events: readonly HistoryEvent[]): number => {
  const kept = withForced(events.filter((event) => event.type !== 'unprotected' || event.key !== undefined));
  return [...exclusion(new Past(inOrder(kept)), LAB_EXPECTATIONS)].length;
};
