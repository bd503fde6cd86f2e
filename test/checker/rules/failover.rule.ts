import type { EventOf } from '../history.js';
import type { Past } from '../past.js';
import type { Violation } from '../violation.js';
import { ms, type Rule } from './rule.js';

/** What the app was told last, for the reader. */
const lastErrorOf = (past: Past, process: string, from: number, to: number): string => {
  const last = past
    .all('refused')
    .filter((one) => one.process === process && one.at >= from && one.at <= to && one.error)
    .at(-1)?.error;
  return last ? `; at last: ${last.code ?? last.name}: ${last.message}` : '';
};

function* unserved(
  past: Past,
  { at, what, outages, limitMs, apps }: EventOf<'failover'>,
): Generator<Violation> {
  const overAt = Math.max(at, outages.at(-1)?.to ?? at);
  for (const { process, connection } of apps) {
    const served = past.all('served').find((one) => one.process === process && one.at >= overAt);
    const until = served?.at ?? past.end;
    if (past.unblockedMs(process, { from: overAt, to: until }) <= limitMs) continue;
    const took = served ? `acquired a key again only after ${ms(until - overAt)}` : 'acquired no key again';
    const text =
      `${process} (${connection}) ${took}, after "${what}": the failover took ${ms(overAt - at)}, and ` +
      `${ms(limitMs)} more are allowed${lastErrorOf(past, process, at, until)}`;
    yield { rule: 'failover', at: overAt + limitMs, text };
  }
}

/** Every app acquires a key again within the failover plus two command time-outs, without a restart. */
export const failover: Rule = function* (past): Generator<Violation> {
  for (const event of past.all('failover')) yield* unserved(past, event);
};
