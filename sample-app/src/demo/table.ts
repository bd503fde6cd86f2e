type Cell = string | number;

/** Gives a cell its colour; its width is that of the text. The row is -1 in the head. */
export type PaintCell = (text: string, row: number, column: number) => string;

/**
 * Columns as wide as their widest line; the first to the left, the others to the right. A title may have several
 * lines.
 */
export const table = (
  titles: readonly string[],
  rows: readonly (readonly Cell[])[],
  paint: PaintCell = (text) => text,
): string => {
  const titleLines = titles.map((title) => title.split('\n'));
  const height = Math.max(...titleLines.map((lines) => lines.length));
  const head = Array.from({ length: height }, (_, line) =>
    // Short titles stand on the rule.
    titleLines.map((lines) => lines[line - (height - lines.length)] ?? ''),
  );
  const widths = titles.map((_, column) =>
    Math.max(...[...head, ...rows].map((cells) => String(cells[column] ?? '').length)),
  );
  const line = (cells: readonly Cell[], row: number): string =>
    cells
      .map((cell, column) => {
        const text = String(cell);
        const padding = ' '.repeat((widths[column] ?? 0) - text.length);
        const painted = text === '' ? '' : paint(text, row, column);
        return column === 0 ? painted + padding : padding + painted;
      })
      .join('  ')
      .trimEnd();
  const rule = widths.map((width) => '─'.repeat(width)).join('──');
  return [...head.map((cells) => line(cells, -1)), rule, ...rows.map(line)].join('\n');
};
