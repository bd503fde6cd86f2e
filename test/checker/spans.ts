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

export const lengthOf = (spans: readonly Span[]): number =>
  spans.reduce((sum, { from, to }) => sum + to - from, 0);
