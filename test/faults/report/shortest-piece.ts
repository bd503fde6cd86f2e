import { inOrder, type HistoryEvent } from '../../checker/history.js';
import type { Violation } from '../../checker/violation.js';

type Judge = (events: readonly HistoryEvent[]) => readonly Violation[];

/** Enough to get from a minute of history to a page. */
const MAX_TRIES = 200;
const FIRST_WINDOW_MS = 500;
/** What happens this shortly before and after is shown with it. */
const MARGIN_MS = 100;

/** Which call each lease was granted to, and each hold in the server. */
interface Owners {
  readonly callOfLease: ReadonlyMap<string, string>;
  readonly callOfGrant: ReadonlyMap<string, string>;
}

const ownersIn = (events: readonly HistoryEvent[]): Owners => {
  const callOfLease = new Map<string, string>();
  const callOfGrant = new Map<string, string>();
  for (const event of events) {
    if (event.type !== 'granted') continue;
    callOfLease.set(event.lease, event.call);
    for (const { key, token, owner, sharedWith } of event.parts) {
      if (sharedWith === undefined) callOfGrant.set(`${key} ${owner ?? token}`, event.call);
    }
  }
  for (const event of events) {
    if (event.type !== 'hold') continue;
    // Several leases may have it one after the other: that of the first.
    const call = callOfGrant.get(`${event.key} ${event.token}`);
    if (call !== undefined) callOfGrant.set(`${event.key} ${event.owner}`, call);
  }
  return { callOfLease, callOfGrant };
};

/** Events that only make sense together; undefined for what has to stay, because it excuses what others do. */
const unitOf = (event: HistoryEvent, { callOfLease, callOfGrant }: Owners): string | undefined => {
  switch (event.type) {
    // Without its caller it would be a hold that nobody has: another mistake.
    case 'hold':
    case 'armed':
    case 'free':
      return callOfGrant.get(`${event.key} ${event.owner}`) ?? `${event.key} ${event.owner}`;
    case 'call':
    case 'abort':
    case 'granted':
    case 'refused':
    case 'served':
      return event.call;
    case 'believes':
    case 'claims':
    case 'extends':
    case 'downgrades':
    case 'announced':
    case 'ended':
    case 'register':
      return callOfLease.get(event.lease);
    case 'result':
      return event.lease === undefined ? event.process : callOfLease.get(event.lease);
    case 'request':
    case 'reply':
      return event.request;
    default:
      return undefined;
  }
};

const sameAs = (violation: Violation): ((other: Violation) => boolean) => {
  // How long something took can change with what is left out.
  const essence = ({ text }: Violation): string => text.replace(/-?\d+(\.\d+)? ms/g, 'some ms');
  return (other) => other.rule === violation.rule && essence(other) === essence(violation);
};

const spanOf = ([first, ...others]: readonly HistoryEvent[]): { from: number; to: number } | undefined =>
  first && { from: first.at, to: others.at(-1)?.at ?? first.at };

/** Leaves out halves, then quarters, and so on, as long as what is left still shows it. */
const withoutNeedless = (
  units: readonly string[],
  shows: (units: ReadonlySet<string>) => boolean,
): string[] => {
  let kept = [...units];
  let tries = 0;
  for (let size = Math.ceil(kept.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < kept.length && tries < MAX_TRIES;) {
      const rest = [...kept.slice(0, from), ...kept.slice(from + size)];
      tries++;
      if (shows(new Set(rest))) kept = rest;
      else from += size;
    }
  }
  return kept;
};

/** The shortest piece of a history, as far as can be found quickly, in which the same thing is wrong. */
export const shortestPiece = (
  history: readonly HistoryEvent[],
  violation: Violation,
  judge: Judge,
): { events: HistoryEvent[]; violation: Violation } => {
  const events = inOrder(history);
  const isSame = sameAs(violation);
  const seenIn = (piece: readonly HistoryEvent[]): Violation | undefined => judge(piece).find(isSame);
  const owners = ownersIn(events);
  const unit = (event: HistoryEvent) => unitOf(event, owners);
  const only = (units: ReadonlySet<string>): HistoryEvent[] =>
    events.filter((event) => {
      const name = unit(event);
      return name === undefined || units.has(name);
    });

  const unitsNear = (windowMs: number): Set<string> => {
    const near = events.filter(({ at }) => Math.abs(at - violation.at) <= windowMs);
    return new Set(near.flatMap((event) => unit(event) ?? []));
  };
  let windowMs = FIRST_WINDOW_MS;
  let units = unitsNear(windowMs);
  const all = new Set(events.flatMap((event) => unit(event) ?? []));
  while (units.size < all.size && !seenIn(only(units))) units = unitsNear((windowMs *= 4));

  const kept = new Set(withoutNeedless([...units], (rest) => seenIn(only(rest)) !== undefined));
  const piece = only(kept);
  const seen = seenIn(piece);
  if (!seen) return { events, violation };

  return { events: withContext(events, piece, seen, (event) => unit(event) !== undefined), violation: seen };
};

/** The piece, without the excuses that have nothing to do with it, and with what was asked about its keys. */
const withContext = (
  events: readonly HistoryEvent[],
  piece: readonly HistoryEvent[],
  seen: Violation,
  isEvidence: (event: HistoryEvent) => boolean,
): HistoryEvent[] => {
  const kept = new Set(piece);
  const about = new Set([...seen.text.matchAll(/"([^"]+)"/g)].map(([, key]) => key!));
  const evidence = piece.filter(isEvidence);
  const own = spanOf(evidence) ?? { from: seen.at, to: seen.at };
  const from = Math.min(own.from, seen.at) - MARGIN_MS;
  const to = Math.max(own.to, seen.at) + MARGIN_MS;
  const processes = new Set(evidence.flatMap((event) => ('process' in event ? event.process : [])));
  const requests = new Set<string>();
  return events.filter((event) => {
    if (kept.has(event) && isEvidence(event)) return true;
    const end = ('until' in event ? event.until : undefined) ?? event.at;
    if (end < from || event.at > to) return false;
    switch (event.type) {
      case 'request':
        if (event.keys.some((key) => about.has(key))) requests.add(event.request);
        return requests.has(event.request);
      case 'reply':
        return requests.has(event.request);
      case 'hold':
      case 'armed':
      case 'free':
        return about.has(event.key);
      default:
        if (!kept.has(event)) return false;
        return processes.size === 0 || !('process' in event) || processes.has(event.process);
    }
  });
};
