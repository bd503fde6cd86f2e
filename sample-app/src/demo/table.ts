type Cell = string | number;

/**
 * Columns as wide as their widest line; the first to the left, the others to the right. A title may have several
 * lines.
 */
export const table = (titles: readonly string[], rows: readonly (readonly Cell[])[]): string => {
  const titleLines = titles.map((title) => title.split('\n'));
  const height = Math.max(...titleLines.map((lines) => lines.length));
  const head = Array.from({ length: height }, (_, line) =>
    // Short titles stand on the rule.
    titleLines.map((lines) => lines[line - (height - lines.length)] ?? ''),
  );
  const widths = titles.map((_, column) =>
    Math.max(...[...head, ...rows].map((cells) => String(cells[column] ?? '').length)),
  );
  const line = (cells: readonly Cell[]): string =>
    cells
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return column === 0 ? String(cell).padEnd(width) : String(cell).padStart(width);
      })
      .join('  ')
      .trimEnd();
  return [...head.map(line), widths.map((width) => '─'.repeat(width)).join('──'), ...rows.map(line)].join(
    '\n',
  );
};
