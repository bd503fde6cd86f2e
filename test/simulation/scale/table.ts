/** A table of the report: text in the first column, numbers in the others. */
export interface Table {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Returns a number with at most three digits that say something. */
export const shown = (value: number): string => {
  const digits = value === 0 || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  const rounded = Number(value.toFixed(digits));
  return rounded.toLocaleString('en', { maximumFractionDigits: digits });
};

/** Returns a table as Markdown, with its title above. */
export const markdownOf = ({ title, head, rows }: Table): string => {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const rule = head.map((_none, i) => (i === 0 ? '---' : '---:'));
  return [`${title}:`, '', line(head), line(rule), ...rows.map(line)].join('\n');
};
