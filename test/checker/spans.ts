/** A stretch of time, in ms: `from` belongs to it, `to` does not. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Spans put together so that they are in order and none touches another. */
export const joined = (spans: readonly Span[]): Span[] => {
  const result: { from: number; to: number }[] = [];
  for (const { from, to } of [...spans].sort((a, b) => a.from - b.from)) {
    const last = result.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else if (to > from) result.push({ from, to });
  }
  return result;
};

/** What is left of a span when others, joined, are taken away. */
export const without = (span: Span, taken: readonly Span[]): Span[] => {
  const left: Span[] = [];
  let { from } = span;
  for (const one of taken) {
    if (one.to <= from) continue;
    if (one.from >= span.to) break;
    if (one.from > from) left.push({ from, to: one.from });
    from = one.to;
  }
  if (from < span.to) left.push({ from, to: span.to });
  return left;
};

/** The part that two spans have in common; undefined when there is none. */
export const common = (a: Span, b: Span): Span | undefined => {
  const from = Math.max(a.from, b.from);
  const to = Math.min(a.to, b.to);
  return from < to ? { from, to } : undefined;
};

/** The times in which at least so many of the spans overlap, in order. */
export const overlaps = (spans: readonly Span[], count: number): Span[] => {
  const ends = spans
    .filter(({ from, to }) => to > from)
    .flatMap(({ from, to }) => [
      { at: from, by: 1 },
      { at: to, by: -1 },
    ])
    // What ends at a moment does not meet what begins then.
    .sort((a, b) => a.at - b.at || a.by - b.by);
  const result: Span[] = [];
  let since: number | undefined;
  let there = 0;
  for (const { at, by } of ends) {
    there += by;
    if (there >= count) since ??= at;
    else if (since !== undefined) {
      if (at > since) result.push({ from: since, to: at });
      since = undefined;
    }
  }
  return result;
};

export const lengthOf = (spans: readonly Span[]): number =>
  spans.reduce((sum, { from, to }) => sum + to - from, 0);
