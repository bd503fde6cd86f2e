import { modeOf, type Call, type Past } from '../past.js';
import { common, joined, lengthOf, without, type Span } from '../spans.js';
import type { Violation } from '../violation.js';
import { deadEntries } from './dead-entries.js';
import { heldSpans } from './held-spans.js';
import { queueSpans } from './queue-spans.js';
import { ms, type Rule } from './rule.js';
import { staysIn } from './stays.js';

/**
 * When the caller stood before the store or behind others of its process. Of several keys nobody can tell from
 * outside for which one it waits, and one that asks only once does not wait.
 */
const waitOf = ({ requested, aborted, end }: Call, past: Past): Span | undefined => {
  if (requested.keys.length !== 1 || requested.waitMs === 0) return undefined;
  const deadline = requested.waitMs === null ? Infinity : requested.at + requested.waitMs;
  return { from: requested.at, to: Math.min(aborted ?? Infinity, end, deadline, past.end) };
};

/** After early work a key is kept from the callers of this process too, whatever became of the hold. */
const keptSpans = (past: Past): Map<string, Span[]> => {
  const kept = new Map<string, Span[]>();
  for (const { requested, granted } of past.calls.values()) {
    if (!granted || !requested.holdAtLeastMs) continue;
    for (const key of requested.keys) {
      const name = `${requested.process} ${key}`;
      kept.set(name, [
        ...(kept.get(name) ?? []),
        { from: requested.at, to: granted.at + requested.holdAtLeastMs },
      ]);
    }
  }
  return kept;
};

/** Whether it was asked for as a fair lock. */
const isFair = (past: Past, key: string): boolean =>
  !past.limits.has(key) &&
  !past.readWrite.has(key) &&
  past.requests.some(({ owners, keys }) => owners && keys.includes(key));

/**
 * When each key may not be read: while somebody writes, and while others read and somebody waits to write, who would never
 * come in else.
 */
const closedToReaders = (past: Past, held: ReadonlyMap<string, readonly Span[]>): Map<string, Span[]> => {
  if (past.readWrite.size === 0) return new Map();
  const queues = queueSpans(past);
  const written = heldSpans(past, 'read');
  const closed = [...past.readWrite].map((key): [string, Span[]] => {
    const writers = (queues.get(key) ?? []).filter(({ mode }) => mode === 'write');
    const behind = writers.flatMap((writer) =>
      (held.get(key) ?? []).flatMap((span) => common(writer, span) ?? []),
    );
    return [key, joined([...(written?.get(key) ?? []), ...behind])];
  });
  return new Map(closed);
};

/**
 * The hold before ended by itself, and while it was there the waiter has heard nothing of the store about it: it was
 * told of another one's end, and looks when it keeps its place.
 */
const isUnforeseen = (past: Past, key: string, process: string, free: Span, keepingMs: number): boolean => {
  const stays = staysIn(past).filter((stay) => stay.key === key);
  const ended = stays.filter(({ how }) => how === 'expired');
  // Of a fair lock each caller has a place of its own: what another one of its process was told is not known to it. Who
  // comes when the hold is over stands behind one that does not know yet.
  if (isFair(past, key)) return ended.some(({ to }) => to <= free.from && free.from - to < keepingMs);
  // Of several who read it is told of the last to end: when that one goes, nobody tells it of those who are left.
  const isLeft = ({ from, to }: Span) => stays.some((other) => from < other.to && other.to < to);
  if (ended.some((one) => one.to <= free.from && free.from - one.to < keepingMs && isLeft(one))) return true;
  const before = ended.find(({ to }) => to === free.from);
  if (!before) return false;
  return !past.requests.some(
    ({ process: requester, what, keys, from, to, outcome }) =>
      requester === process &&
      what !== 'inspect' &&
      keys.includes(key) &&
      from >= before.from &&
      to <= before.to &&
      outcome !== undefined,
  );
};

/** When somebody is in a lease of the process with this key: siblings go in one after the other, also those that read. */
const insideSpans = (past: Past, process: string, key: string): Span[] =>
  joined(
    [...past.leases.values()]
      .filter(
        ({ process: own, granted: { parts } }) =>
          own === process && parts.some((part) => part.key === key && part.sharedWith !== undefined),
      )
      .map(({ granted: { at }, ended }) => ({ from: at, to: ended })),
  );

/** How long an entry in the queue of a fair or a read-write lock is alive without a refresh, in ms. */
const ENTRY_LIVES_MS = 5_000;

/**
 * After the data is lost, a waiter finds out that its entry is gone when it refreshes it. After a failover, the queue of a fair
 * or a read-write lock may be there as it was before: it has entries of owners that do not wait any more. Each of them counts
 * until it is dead.
 */
const lostQueues = (past: Past, key: string, keepingMs: number): Span[] => {
  const mayBeOld = past.readWrite.has(key) || isFair(past, key);
  const lastsMs = keepingMs + (mayBeOld ? ENTRY_LIVES_MS : 0);
  return past
    .all('unprotected')
    .filter((one) => one.key === undefined)
    .map(({ at }) => ({ from: at, to: at + lastsMs }));
};

/**
 * A free key is taken by those who wait for it, at once and not because a time is over. Who has asked and has no
 * answer yet does not wait for the key, but for the store.
 */
export const promptness: Rule = function* (past, { promptMs, keepingMs }): Generator<Violation> {
  const held = heldSpans(past);
  if (!held) return;
  const kept = keptSpans(past);
  const closed = closedToReaders(past, held);
  for (const call of past.calls.values()) {
    const wait = waitOf(call, past);
    if (!wait || wait.to - wait.from <= promptMs) continue;
    const { process, call: name } = call.requested;
    const key = call.requested.keys[0]!;
    const dead = joined([...deadEntries(past, key), ...lostQueues(past, key, keepingMs)]);
    const inside = past.readWrite.has(key) ? insideSpans(past, process, key) : [];
    // Behind one that cannot move nobody moves: of a fair or read-write lock that is everybody who has asked for it.
    const others = past.requests.filter(({ owners, keys }) => owners && keys.includes(key));
    const before = past.limits.has(key) ? [] : [...new Set(others.map((one) => one.process))];
    const idleIn = (free: Span): Span[] =>
      [process, ...before]
        .reduce((spans, one) => spans.flatMap((span) => past.calm(one, span)), [free])
        .flatMap((calm) => past.protectedParts(key, calm))
        .flatMap((calm) => without(calm, joined(kept.get(`${process} ${key}`) ?? [])))
        .flatMap((calm) => without(calm, dead))
        .flatMap((calm) => without(calm, inside))
        .flatMap((calm) => without(calm, past.requestSpans(process, [key])));
    // On a busy machine every moment is disturbed, but not for ever: what counts is how much time there was in all.
    const reads = modeOf(call.requested, key) === 'read';
    for (const free of without(wait, (reads ? closed : held).get(key) ?? [])) {
      const idleMs = lengthOf(idleIn(free));
      if (idleMs <= promptMs) continue;
      if (idleMs <= promptMs + keepingMs && isUnforeseen(past, key, process, free, keepingMs)) continue;
      yield {
        rule: 'promptness',
        at: free.from + promptMs,
        text: `"${key}" was free for ${ms(idleMs)} while ${name} (${process}) waited for it`,
      };
      break;
    }
  }
};
