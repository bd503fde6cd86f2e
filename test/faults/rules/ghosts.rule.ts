import type { EventOf } from '../../checker/history.js';
import type { LeaseSeen, Past } from '../../checker/past.js';
import { ms } from '../../checker/rules/rule.js';
import type { Span } from '../../checker/spans.js';
import type { Violation } from '../../checker/violation.js';

/** The library asks again at most this long after a release that failed, in ms; and then has to be answered. */
const LONGEST_PAUSE_MS = 1_000;
const PATIENCE_MS = LONGEST_PAUSE_MS + 300;

/** One owner's hold, as the server saw it. */
interface Stay extends Span {
  readonly key: string;
  readonly owner: string;
  readonly tokens: readonly number[];
}

const staysOf = (past: Past): Stay[] => {
  const open = new Map<string, { key: string; owner: string; from: number; tokens: number[] }>();
  const stays: Stay[] = [];
  const events = [...past.all('hold'), ...past.all('free')].sort((a, b) => a.at - b.at);
  for (const event of events) {
    const name = `${event.key} ${event.owner}`;
    const stay = open.get(name);
    if (event.type === 'hold') {
      if (!stay)
        open.set(name, { key: event.key, owner: event.owner, from: event.at, tokens: [event.token ?? 0] });
      else if (event.token !== undefined) stay.tokens.push(event.token);
    } else if (stay) {
      stays.push({ ...stay, to: event.at });
      open.delete(name);
    }
  }
  return [...stays, ...[...open.values()].map((stay) => ({ ...stay, to: past.end }))];
};

const partOf = (granted: EventOf<'granted'>, { key, tokens }: Stay) =>
  granted.parts.find(
    (part) => part.key === key && part.sharedWith === undefined && tokens.includes(part.token),
  );

/** From when on nobody needs the hold. */
const needlessFrom = (past: Past, stay: Stay, lease: LeaseSeen | undefined): number => {
  if (!lease) return stay.from;
  const keepMs = past.calls.get(lease.granted.call)?.asked.holdAtLeastMs ?? 0;
  return Math.max(lease.ended, lease.granted.at + keepMs);
};

/**
 * A hold that nobody has, or has any more, does not stay until its lease is over, if its process can do something
 * about it: an acquire whose answer never came is undone, and a release that failed is tried again.
 *
 * @param processOf which process an owner belongs to
 */
export function* ghosts(past: Past, processOf: (owner: string) => string | undefined): Generator<Violation> {
  const leases = [...past.leases.values()];
  for (const stay of staysOf(past)) {
    const process = processOf(stay.owner);
    if (process === undefined) continue;
    const lease = leases.find((one) => one.process === process && partOf(one.granted, stay));
    const to = Math.min(stay.to, past.crashedAt(process));
    const from = needlessFrom(past, stay, lease);
    if (to - from <= PATIENCE_MS) continue;
    const tooLong = past.calm(process, { from, to }).find((calm) => calm.to - calm.from > PATIENCE_MS);
    if (!tooLong) continue;
    yield {
      rule: 'ghosts',
      at: tooLong.from + PATIENCE_MS,
      text: `the hold of ${stay.owner} (${process}) on "${stay.key}" stayed for ${ms(to - from)} although nobody had it`,
    };
  }
}
