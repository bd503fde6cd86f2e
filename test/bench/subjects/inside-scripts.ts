import { EXCLUSIVE_SCRIPTS } from '../../../lib/stores/redis/kinds/exclusive/redis-exclusive.js';
import { PERMIT_SCRIPTS } from '../../../lib/stores/redis/kinds/permit/redis-permit.js';
import { READ_WRITE_SCRIPTS } from '../../../lib/stores/redis/kinds/read-write/redis-read-write.js';
import { SEMAPHORE_SCRIPTS } from '../../../lib/stores/redis/kinds/semaphore/redis-semaphore.js';

const CALLS = /redis\.p?call\('(\w+)'(?:, '(numsub)')?/g;

const SCRIPTS = [...EXCLUSIVE_SCRIPTS, ...READ_WRITE_SCRIPTS, ...PERMIT_SCRIPTS, ...SEMAPHORE_SCRIPTS];

/** Commands that the scripts of this library run inside Redis, and that no process sends itself. */
export const INSIDE_SCRIPTS: readonly string[] = [
  ...new Set([
    // Called by a name that is an argument.
    'publish',
    'spublish',
    ...SCRIPTS.flatMap(({ source }) =>
      [...source.matchAll(CALLS)].map(([, command, sub]) => (sub ? `${command}|${sub}` : command!)),
    ),
  ]),
];
