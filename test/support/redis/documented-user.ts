import type { RedisOptions } from 'ioredis';
import { codeBlocks, markdownIn, readFromRoot, section } from '../markdown.js';
import type { RedisServer } from '../servers/redis-server.js';
import type { Lab } from './lab.js';

const PASSWORD = 'secret';

const documents = ['README.md', ...markdownIn('docs')];
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
/** Rules of the smallest user that are for the wait queue alone. */
export const QUEUE_RULES = rulesIn('For the wait queue');
/** And for lists of holds. */
export const LIST_RULES = rulesIn('For lists');
/** And in a cluster. */
export const CLUSTER_RULES = rulesIn('In a cluster');
/** And with `replicas`. */
export const REPLICAS_RULES = rulesIn('With replicas');
/** Of a user of the sentinels. */
export const SENTINEL_RULES = rulesIn('Behind Sentinel');

/** Gives the documented user these rules on each server, which has refused nothing yet. */
export const giveRules = async (servers: readonly RedisServer[], rules: readonly string[]): Promise<void> => {
  for (const server of servers) {
    await server.cli('ACL', 'SETUSER', documentedLogin.username, 'reset', ...rules);
    await server.cli('ACL', 'LOG', 'RESET');
  }
};

/** Gives the documented user these rules, on a server that has seen no command yet. Returns its client options. */
export const userWith = async ({ admin, server }: Lab, rules: readonly string[]): Promise<RedisOptions> => {
  await giveRules([server], rules);
  await admin.script('FLUSH');
  await admin.config('RESETSTAT');
  return { ...server.clientOptions(), ...documentedLogin };
};

/** Returns the names of keys, channels and commands that servers have refused. */
export const refusedBy = async (...servers: readonly RedisServer[]): Promise<string[]> => {
  const logs = await Promise.all(servers.map((server) => server.cli('ACL', 'LOG')));
  const entries = logs.flat() as unknown[][];
  return entries.map((entry) => String(entry[entry.indexOf('object') + 1]));
};
