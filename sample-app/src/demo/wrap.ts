import { stripVTControlCharacters } from 'node:util';

/** How wide a terminal is at least. */
const COLUMNS = 80;

/** Breaks lines between words where they are too long for a terminal. What fits stays as it is. */
export const wrap = (text: string): string => text.split('\n').map(wrapLine).join('\n');

/** What it takes on a terminal, where colours take nothing. */
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
