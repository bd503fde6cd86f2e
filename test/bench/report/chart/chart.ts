/** Which numbers of a comparison are drawn, and how. */
export type Chart =
  /** A row for each contender, a column of bars for each metric. */
  | {
      readonly kind: 'bars';
      readonly file: string;
      readonly title: string;
      readonly metrics: readonly string[];
    }
  /** A row for each contender, from one metric to another, with a mark at each: percentiles. */
  | {
      readonly kind: 'ranges';
      readonly file: string;
      readonly title: string;
      readonly metrics: readonly string[];
    }
  /** One line for each contender, along the axis. */
  | { readonly kind: 'lines'; readonly file: string; readonly title: string; readonly metric: string };
