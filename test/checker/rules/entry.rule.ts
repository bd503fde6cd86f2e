import type { LeaseSeen, Past } from '../past.js';
import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';
import { groundlessMs, stayOf } from './stays.js';

/** For how long, at this moment, one of the lease's keys had not been in the store any more. */
const gone = (past: Past, { process, granted }: LeaseSeen, at: number): { key: string; forMs: number } => {
  let max = { key: '', forMs: 0 };
  for (const part of granted.parts) {
    const { key } = part;
    const stay = stayOf(past, key, part);
    const forMs = stay ? groundlessMs(past, process, stay, at) : 0;
    if (forMs > max.forMs) max = { key, forMs };
  }
  return max;
};

/** Nobody is let in without a hold that is valid at that moment, and no lease that is over passes for valid. */
export const entry: Rule = function* (past, { overlapMs }): Generator<Violation> {
  /** How leases ended, as far as the history goes at that event. */
  const over = new Map<string, string>();
  for (const event of past.events) {
    if (event.type === 'ended' || event.type === 'announced') {
      const how = event.type === 'ended' ? 'had been given back' : 'was lost, and its caller told';
      over.set(event.lease, over.get(event.lease) ?? how);
      continue;
    }
    if (event.type !== 'granted' && event.type !== 'claims') continue;
    const { at, process, lease: id, type } = event;
    const lease = past.leases.get(id)!;
    // It may have stood still with a lease already in its hands; a section looks again before it begins.
    const { key, forMs } = gone(past, lease, type === 'granted' ? past.begunAt(process, at) : at);
    const what = type === 'granted' ? 'was given out' : `passes for valid (${event.what})`;
    const how = over.get(id);
    if (type === 'claims' && how) {
      yield { rule: 'entry', at, text: `${id} (${process}) ${what}, though it ${how}` };
    } else if (forMs > overlapMs) {
      const text = `${id} (${process}) ${what} ${ms(forMs)} after its hold on "${key}" had ended`;
      yield { rule: 'entry', at, text };
    }
  }
};
