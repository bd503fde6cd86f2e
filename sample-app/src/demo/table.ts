type Cell = string | number;

/** Colours a cell, whose width is that of the plain text. The row is -1 in the head. */
export type PaintCell = (text: string, row: number, column: number) => string;

/**
 * Returns a table with columns as wide as their widest line. The first column is aligned left, the others right. A
 * title may have several lines.
 */
export const table = (
  titles: readonly string[],
  rows: readonly (readonly Cell[])[],
  paint: PaintCell = (text) => text,
): string => {
  const titleLines = titles.map((title) => title.split('\n'));
  const height = Math.max(...titleLines.map((lines) => lines.length));
  const head = Array.from({ length: height }, (_, line) =>
    // Short titles stand at the bottom of the head.
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
