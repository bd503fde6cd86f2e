import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { codeBlocks, readFromRoot, tables, type Table } from '../support/markdown.js';

const DOCS = fileURLToPath(new URL('../../docs/', import.meta.url));

/** The folders whose pages tell users something; the others are decisions, and figures that a program writes. */
export const FOLDERS = ['guide', 'locks', 'stores', 'operations', 'recipes', 'migration'] as const;

/** A page of the documentation. */
export interface Page {
  /** From the root of the repository. */
  readonly path: string;
  readonly text: string;
}

const pageAt = (path: string): Page => ({ path, text: readFromRoot(path) });

/** The pages of one folder of docs/, by name. */
export const pagesIn = (folder: (typeof FOLDERS)[number]): Page[] =>
  readdirSync(`${DOCS}${folder}`)
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => pageAt(`docs/${folder}/${name}`));

/** What a user reads: the README, and every page of the folders. */
export const PAGES: readonly Page[] = [
  ...['README.md', 'docs/README.md'].map(pageAt),
  ...FOLDERS.flatMap(pagesIn),
];

/** One text of all of it. */
export const DOCUMENTATION = PAGES.map(({ text }) => text).join('\n');

export const page = (path: string): string => {
  const found = PAGES.find((one) => one.path === path);
  if (!found) throw new Error(`there is no page ${path}`);
  return found.text;
};

/** A code block, and where it stands. */
export interface Block {
  readonly page: string;
  readonly code: string;
}

/** The TypeScript of all pages, in the order of the pages. */
export const examplesOnPages = (): Block[] =>
  PAGES.flatMap(({ path, text }) => codeBlocks(text, 'ts').map((code) => ({ page: path, code })));

/** The tables of all pages whose first column has this head. */
export const tablesOf = (firstColumn: string): Table[] =>
  tables(DOCUMENTATION).filter(({ head }) => head[0] === firstColumn);
