import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { codeBlocks, readFromRoot, section } from '../markdown.js';

const PASSWORD = 'secret';
const DOCS = fileURLToPath(new URL('../../../docs', import.meta.url));

const documents = [
  'README.md',
  ...readdirSync(DOCS, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => `docs/${path}`),
];
const users = documents
  .flatMap((path) => codeBlocks(readFromRoot(path), 'text'))
  .filter((block) => block.startsWith('user locks '));
if (users.length !== 1) throw new Error(`there are ${users.length} users of Redis in the documents, not one`);

/** The rules of the smallest user of Redis as the documents give them, word by word. There is no other list. */
export const DOCUMENTED_RULES: readonly string[] = users[0]!
  .replace(/^user locks /, '')
  .replace('<password>', PASSWORD)
  .trim()
  .split(/\s+/);

export const documentedLogin = { username: 'locks', password: PASSWORD };

/** What the user needs beside these for permits. */
export const PERMIT_RULES: readonly string[] = codeBlocks(
  section(readFromRoot('docs/operations/permissions.md'), 'With permits'),
  'text',
)[0]!
  .trim()
  .split(/\s+/);
