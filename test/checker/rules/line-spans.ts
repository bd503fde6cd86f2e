import type { Mode } from '../history.js';
import type { Past, Request } from '../past.js';
import type { Span } from '../spans.js';

/** How long a place stands in line that nobody keeps. */
const PLACE_LIVES_MS = 5_000;
/** The same where nobody knows when the store did what was asked. */
const OUTLIVES_MS = 8_000;

/** When an owner of a process stood in line, for certain or perhaps. */
export interface InLine extends Span {
  readonly process: string;
  readonly isCertain: boolean;
  /** Of a read-write lock: as what it waited. */
  readonly mode: Mode | undefined;
}

type Standing = { -readonly [K in keyof InLine]: InLine[K] } & {
  readonly key: string;
  /** How many owners of the process may stand there whose questions had no answer: each is undone by itself. */
  doubts: number;
};

/** What the store said of the key to the process; undefined when it never answered. */
const outcomeFor = ({ what, keys, outcome }: Request, key: string): string | undefined =>
  what === 'keep' ? outcome?.split(' ')[keys.indexOf(key)] : outcome;

/**
 * When somebody stood in line for each key, as far as their processes know: until the store said otherwise, or the
 * place was dead. A question without an answer may have put its owner there.
 */
export const lineSpans = (past: Past): ReadonlyMap<string, readonly InLine[]> => {
  const spans = new Map<string, InLine[]>();
  const standing = new Map<string, Standing>();
  const end = (name: string, at: number): void => {
    const one = standing.get(name);
    if (!one) return;
    standing.delete(name);
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
      const lives = isUnknown ? from + OUTLIVES_MS : to + PLACE_LIVES_MS;
      const lasts = owner && !mode ? Infinity : lives;
      const one = standing.get(name);
      // A place that is there may have been kept; one that is not is never made by that.
      const isKept = what === 'keep' && isUnknown && one !== undefined;
      if (outcome === 'queued' || isKept || (what === 'acquire' && isUnknown)) {
        const isCertain = outcome === 'queued';
        const doubts = what === 'acquire' && isUnknown ? 1 : 0;
        if (!one) standing.set(name, { key, process, isCertain, mode, from, to: lasts, doubts });
        else {
          one.to = Math.max(one.to, lasts);
          one.isCertain ||= isCertain;
          one.doubts += doubts;
        }
      } else if (outcome !== undefined && !/^(not-executed|unknown|failed)/.test(outcome)) {
        if (one && what === 'undo') one.doubts = Math.max(0, one.doubts - 1);
        if (!one?.doubts) end(name, to);
      }
    }
  }
  for (const name of [...standing.keys()]) end(name, Infinity);
  return spans;
};
