/** A table of a comparison, before it is text: a contender in each row, a metric in each column. */
export interface Grid {
  readonly caption: string | undefined;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Columns padded to the same width, the first one to the left. */
export const textOf = ({ caption, head, rows }: Grid): string => {
  const lines = [head, ...rows];
  const widths = head.map((_none, column) => Math.max(...lines.map((line) => line[column]!.length)));
  const text = lines.map((line) =>
    line
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!)))
      .join('  ')
      .trimEnd(),
  );
  return [...(caption === undefined ? [] : [caption]), ...text].map((line) => `  ${line}`).join('\n');
};

const escaped = (cell: string): string => cell.replaceAll('|', '\\|');

export const markdownOf = ({ caption, head, rows }: Grid): string => {
  const line = (cells: readonly string[]): string => `| ${cells.map(escaped).join(' | ')} |`;
  const rule = head.map((_none, at) => (at === 0 ? '---' : '---:'));
  const table = [line(head), line(rule), ...rows.map(line)].join('\n');
  return caption === undefined ? table : `${caption}:\n\n${table}`;
};
