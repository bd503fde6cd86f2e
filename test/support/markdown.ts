import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const fromRoot = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

export const readFromRoot = (path: string): string => readFileSync(fromRoot(path), 'utf8');

/** The documents in a folder, by name, without the site: its packages have documents, too. */
export const markdownIn = (folder: string): string[] =>
  readdirSync(fromRoot(folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !name.startsWith('.site/'))
    .map((name) => join(folder, name))
    .sort();

/** The code blocks of one language, in order. */
export const codeBlocks = (markdown: string, language: string): string[] =>
  [...markdown.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, code]) => code!);

const withoutCode = (markdown: string): string => markdown.replace(/^```.*?^```$/gms, '');

/** The text under a second-level heading, up to the next one. */
export const section = (markdown: string, heading: string): string => {
  const [, after] = markdown.split(`\n## ${heading}\n`);
  if (after === undefined) throw new Error(`there is no section "${heading}"`);
  return after.split(/^## /m)[0]!;
};

/** The second-level headings, in order. */
export const headings = (markdown: string): string[] =>
  [...withoutCode(markdown).matchAll(/^## (.+)$/gm)].map(([, heading]) => heading!);

/** A table: the cells of its head, and of each row. */
export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly string[][];
}

const cellsOf = (line: string): string[] =>
  line
    .trim()
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());

/** The tables of a text, in order. */
export const tables = (markdown: string): Table[] =>
  [...withoutCode(markdown).matchAll(/(?:^\|.*(?:\n|$))+/gm)].map(([table]) => {
    const [head = [], _ruler, ...rows] = table.trim().split('\n').map(cellsOf);
    return { head, rows };
  });

/** The rows of all tables in a text, without their heads: trimmed cells. */
export const tableRows = (markdown: string): string[][] => tables(markdown).flatMap(({ rows }) => rows);

/** What stands in backticks, in the text and not in its code blocks. */
export const codeSpans = (text: string): string[] =>
  [...withoutCode(text).matchAll(/`([^`]+)`/g)].map(([, code]) => code!);

/** The targets of all links of a document, those of `[name]: target` too. */
export const links = (markdown: string): string[] =>
  [...withoutCode(markdown).matchAll(/\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$/gm)].map(
    ([, inline, named]) => inline ?? named!,
  );

/** How GitHub names a heading in a link; of several with one text, the later ones get a number. */
export const anchors = (markdown: string): string[] => {
  const seen = new Map<string, number>();
  return [...withoutCode(markdown).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => {
    const anchor = heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
    const earlier = seen.get(anchor) ?? 0;
    seen.set(anchor, earlier + 1);
    return earlier === 0 ? anchor : `${anchor}-${earlier}`;
  });
};
