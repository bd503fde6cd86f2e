type Cell = string | number;

/** Columns as wide as their widest cell; numbers to the right, the first column to the left. */
export const table = (head: readonly string[], rows: readonly (readonly Cell[])[]): string => {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => String(row[column] ?? '').length)),
  );
  const line = (cells: readonly Cell[]) =>
    cells
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return column === 0 ? String(cell).padEnd(width) : String(cell).padStart(width);
      })
      .join('   ')
      .trimEnd();
  return [line(head), widths.map((width) => '─'.repeat(width)).join('───'), ...rows.map(line)].join('\n');
};
