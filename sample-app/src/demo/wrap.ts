import { stripVTControlCharacters } from 'node:util';

/** Minimum width of a terminal. */
const COLUMNS = 80;

/** Breaks lines between words if they are too long for a terminal. */
export const wrap = (text: string): string => text.split('\n').map(wrapLine).join('\n');

/** Returns the width on a terminal, where colour codes have none. */
const widthOf = (text: string): number => stripVTControlCharacters(text).length;

const wrapLine = (line: string): string => {
  if (widthOf(line) <= COLUMNS) return line;
  const lines: string[] = [];
  let current = '';
  for (const word of line.split(' ')) {
    const longer = current === '' ? word : `${current} ${word}`;
    if (widthOf(longer) > COLUMNS && current !== '') {
      lines.push(current);
      current = word;
    } else current = longer;
  }
  return [...lines, current].join('\n');
};
