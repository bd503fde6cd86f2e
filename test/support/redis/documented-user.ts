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

const rulesIn = (title: string): readonly string[] =>
  codeBlocks(section(readFromRoot('docs/operations/permissions.md'), title), 'text')[0]!
    .trim()
    .split(/\s+/);

/** What the user needs beside these for permits. */
export const PERMIT_RULES = rulesIn('With permits');

/** And for fencing tokens that are shared with Java. */
export const COUNTER_RULES = rulesIn('With tokens shared with Java');
/** And for fair locks. */
export const FAIR_RULES = rulesIn('With fair locks');
/** And for read-write locks. */
export const READ_WRITE_RULES = rulesIn('With read-write locks');
/** What the user needs beside these for semaphores and latches. */
export const OBJECT_RULES = rulesIn('With semaphores and latches');
/** Those of them that are for the line alone. */
export const QUEUE_RULES = rulesIn('For the wait queue');

/** The user as the documents had it before there were lines. */
export const RULES_WITHOUT_QUEUE = DOCUMENTED_RULES.filter((rule) => !QUEUE_RULES.includes(rule));
/** And in a cluster. */
export const CLUSTER_RULES = rulesIn('In a cluster');
/** And with `replicas`. */
export const REPLICAS_RULES = rulesIn('With replicas');
/** Of a user of the sentinels. */
export const SENTINEL_RULES = rulesIn('Behind Sentinel');
