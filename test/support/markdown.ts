import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const fromRoot = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

export const readFromRoot = (path: string): string => readFileSync(fromRoot(path), 'utf8');

/** The code blocks of one language, in order. */
export const codeBlocks = (markdown: string, language: string): string[] =>
  [...markdown.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, code]) => code!);

/** The text under a heading, up to the next one of the same level. */
export const section = (markdown: string, heading: string): string => {
  const [, after] = markdown.split(`\n## ${heading}\n`);
  if (after === undefined) throw new Error(`README.md has no section "${heading}"`);
  return after.split(/^## /m)[0]!;
};

/** The rows of the tables in a text, without their heads: trimmed cells. */
export const tableRows = (markdown: string): string[][] =>
  markdown
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) => line.slice(1, -1).split('|'))
    .map((cells) => cells.map((cell) => cell.trim()))
    .filter((_, at, rows) => !isRuler(rows[at]!) && !isRuler(rows[at + 1] ?? []));

const isRuler = (cells: readonly string[]): boolean =>
  cells.length > 0 && cells.every((cell) => /^:?-+:?$/.test(cell));

/** What stands in backticks, in the text and not in its code blocks. */
export const codeSpans = (text: string): string[] =>
  [...text.replace(/^```.*?^```$/gms, '').matchAll(/`([^`]+)`/g)].map(([, code]) => code!);

/** The targets of all links of a document. */
export const links = (markdown: string): string[] =>
  [...markdown.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!);

/** How GitHub names a heading in a link. */
export const anchors = (markdown: string): string[] =>
  [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
