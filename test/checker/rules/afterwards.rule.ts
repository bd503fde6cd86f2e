import type { Violation } from '../violation.js';
import type { Rule } from './rule.js';

/** How a caller is called that comes when all is over, and every lease that anybody asked for has run out. */
export const AFTERWARDS = 'afterwards';

/** No key stays dead, neither in the store nor in a process. */
export const afterwards: Rule = function* (past): Generator<Violation> {
  for (const { requested, granted, refused } of past.calls.values()) {
    if (requested.style !== AFTERWARDS || granted || refused?.error?.code === 'LOCK_STORE_FAILED') continue;
    const text = `"${requested.keys.join('", "')}" cannot be taken in ${requested.process} any more: ${refused?.error?.code ?? 'it is taken'}`;
    yield { rule: 'dead key', at: requested.at, text };
  }
};
