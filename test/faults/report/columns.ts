/** Rows below each other: so many columns are text, on the left; the others are numbers, on the right. */
export const columnsOf = (rows: readonly (readonly string[])[], texts: number): string => {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const cell = (text: string, i: number): string =>
    i < texts ? text.padEnd(widths[i]!) : text.padStart(widths[i]!);
  return rows.map((row) => row.map(cell).join('  ').trimEnd()).join('\n');
};
