import type { Violation } from '../violation.js';
import type { Rule } from './rule.js';

/** When all is over nothing is left: no hold in the store, and nothing in the process. */
export const leftovers: Rule = function* (past): Generator<Violation> {
  for (const { at, process, key, owner } of past.all('left')) {
    const text = `the hold of ${owner} on "${key}" is still in the store, though ${process} has nothing to do`;
    yield { rule: 'leftovers', at, text };
  }
  for (const { at, process, sizes } of past.all('usage')) {
    const left = Object.entries(sizes).filter(([, size]) => size !== 0);
    if (left.length === 0) continue;
    const text = `${process} still has ${left.map(([name, size]) => `${name}: ${size}`).join(', ')}`;
    yield { rule: 'leftovers', at, text };
  }
};
