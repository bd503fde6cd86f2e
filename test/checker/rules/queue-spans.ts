import type { Mode } from '../history.js';
import type { Past, Request } from '../past.js';
import type { Span } from '../spans.js';

/** How long a place stands in line that nobody keeps. */
const ENTRY_LIVES_MS = 5_000;
/** The same where nobody knows when the store did what was asked. */
const OUTLIVES_MS = 8_000;

/** When an owner of a process stood in line, for certain or perhaps. */
export interface QueueSpan extends Span {
  readonly process: string;
  readonly isCertain: boolean;
  /** Of a read-write lock: as what it waited. */
  readonly mode: Mode | undefined;
}

type OpenSpan = { -readonly [K in keyof QueueSpan]: QueueSpan[K] } & {
  readonly key: string;
  /** How many owners of the process may stand there whose questions had no answer: each is undone by itself. */
  uncertain: number;
};

/** What the store said of the key to the process; undefined when it never answered. */
const outcomeFor = ({ what, keys, outcome }: Request, key: string): string | undefined =>
  what === 'keep' ? outcome?.split(' ')[keys.indexOf(key)] : outcome;

/**
 * When somebody stood in line for each key, as far as their processes know: until the store said otherwise, or the
 * place was dead. A question without an answer may have put its owner there.
 */
export const queueSpans = (past: Past): ReadonlyMap<string, readonly QueueSpan[]> => {
  const spans = new Map<string, QueueSpan[]>();
  const open = new Map<string, OpenSpan>();
  const end = (name: string, at: number): void => {
    const one = open.get(name);
    if (!one) return;
    open.delete(name);
    const { key, process, isCertain, mode, from, to } = one;
    spans.set(key, [...(spans.get(key) ?? []), { process, isCertain, mode, from, to: Math.min(at, to) }]);
  };
  for (const request of past.requests) {
    const { process, what, keys, owners, mode, from, to } = request;
    for (const [i, key] of keys.entries()) {
      // Of a fair lock each caller has a place of its own, which counts until it is over; of a read-write lock there is one
      // to read and one to write, and any number may be left by callers that are gone.
      const owner = past.limits.has(key) ? undefined : owners?.[i];
      const name = `${process} ${key} ${owner ?? ''}`;
      const outcome = outcomeFor(request, key);
      const isUnknown = outcome === undefined || outcome === 'unknown';
      const lives = isUnknown ? from + OUTLIVES_MS : to + ENTRY_LIVES_MS;
      const lasts = owner && !mode ? Infinity : lives;
      const one = open.get(name);
      // A place that is there may have been kept; one that is not is never made by that.
      const isKept = what === 'keep' && isUnknown && one !== undefined;
      if (outcome === 'queued' || isKept || (what === 'acquire' && isUnknown)) {
        const isCertain = outcome === 'queued';
        const uncertain = what === 'acquire' && isUnknown ? 1 : 0;
        if (!one) open.set(name, { key, process, isCertain, mode, from, to: lasts, uncertain });
        else {
          one.to = Math.max(one.to, lasts);
          one.isCertain ||= isCertain;
          one.uncertain += uncertain;
        }
      } else if (outcome !== undefined && !/^(not-executed|unknown|failed)/.test(outcome)) {
        if (one && what === 'undo') one.uncertain = Math.max(0, one.uncertain - 1);
        if (!one?.uncertain) end(name, to);
      }
    }
  }
  for (const name of [...open.keys()]) end(name, Infinity);
  return spans;
};
