import { readFile, writeFile } from 'node:fs/promises';
import { format, resolveConfig } from 'prettier';
import { markdownOf, type Table } from './table.js';

const marks = (name: string): readonly [begin: string, end: string] => [
  `<!-- scale:${name}:begin -->`,
  `<!-- scale:${name}:end -->`,
];

/** Puts tables between the marks of their part in a Markdown file. */
export const writePage = async (
  file: string,
  parts: ReadonlyMap<string, readonly Table[]>,
): Promise<void> => {
  let text = await readFile(file, 'utf8');
  for (const [name, tables] of parts) {
    const [begin, end] = marks(name);
    const [from, to] = [text.indexOf(begin), text.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`${file} has no ${begin} … ${end}`);
    const between = tables.map(markdownOf).join('\n\n');
    text = `${text.slice(0, from + begin.length)}\n\n${between}\n\n${text.slice(to)}`;
  }
  await writeFile(file, await format(text, { ...(await resolveConfig(file)), filepath: file }));
};
