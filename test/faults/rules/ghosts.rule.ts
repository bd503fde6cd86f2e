import type { LeaseSeen, Past } from '../../checker/past.js';
import { joined, without, type Span } from '../../checker/spans.js';
import { ms } from '../../checker/rules/rule.js';
import { gave, staysIn, type Stay } from '../../checker/rules/stays.js';
import type { Violation } from '../../checker/violation.js';

/** The library asks again at most this long after a release that failed, in ms; and then has to be answered. */
const LONGEST_PAUSE_MS = 1_000;
const PATIENCE_MS = LONGEST_PAUSE_MS + 300;

const has = ({ granted }: LeaseSeen, stay: Stay): boolean =>
  granted.parts.some((part) => part.key === stay.key && part.sharedWith === undefined && gave(stay, part));

/** From when on nobody needs the hold. */
const needlessFrom = (past: Past, stay: Stay, leases: readonly LeaseSeen[]): number =>
  Math.max(
    stay.from,
    ...leases.map((lease) => {
      const keepMs = past.calls.get(lease.granted.call)?.requested.holdAtLeastMs ?? 0;
      return Math.max(lease.ended, lease.granted.at + keepMs);
    }),
  );

/** While a caller of several keys waits for one of them, it needs those that it has already. */
const collecting = (past: Past, process: string, { key }: Stay): Span[] =>
  joined(
    [...past.calls.values()]
      .filter(
        ({ requested }) =>
          requested.process === process && requested.keys.length > 1 && requested.keys.includes(key),
      )
      .map(({ requested, end }) => ({ from: requested.at, to: end })),
  );

/**
 * A hold that nobody has, or has any more, does not stay until its lease is over, if its process can do something
 * about it: an acquire whose answer never came is undone, and a release that failed is tried again.
 *
 * @param processOf which process an owner belongs to
 */
export function* ghosts(past: Past, processOf: (owner: string) => string | undefined): Generator<Violation> {
  const leases = [...past.leases.values()];
  for (const stay of staysIn(past)) {
    const process = processOf(stay.owner);
    if (process === undefined) continue;
    const holders = leases.filter((lease) => lease.process === process && has(lease, stay));
    const to = Math.min(stay.to, past.crashedAt(process));
    const from = needlessFrom(past, stay, holders);
    if (to - from <= PATIENCE_MS) continue;
    const tooLong = without({ from, to }, collecting(past, process, stay))
      .flatMap((needless) => past.calm(process, needless))
      .find((calm) => calm.to - calm.from > PATIENCE_MS);
    if (!tooLong) continue;
    yield {
      rule: 'ghosts',
      at: tooLong.from + PATIENCE_MS,
      text: `the hold of ${stay.owner} (${process}) on "${stay.key}" stayed for ${ms(to - from)} although nobody had it`,
    };
  }
}
