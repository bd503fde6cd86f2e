import {
  EXCLUSIVE_ACQUIRE,
  EXCLUSIVE_EXTEND,
  EXCLUSIVE_FORCE_UNLOCK,
  EXCLUSIVE_RELEASE,
} from '../../../lib/stores/redis/kinds/exclusive/scripts.js';
import { batchOf } from '../../../lib/stores/redis/connection/script-batch.js';
import { EXCLUSIVE_BATCH_PARTS } from '../../../lib/stores/redis/kinds/exclusive/redis-exclusive.js';
import { Script } from '../../../lib/stores/redis/connection/script.js';

const shaOf = (source: string): string => new Script(source).sha;
const BATCH = batchOf(EXCLUSIVE_BATCH_PARTS).sha;

/** How the requests that run a script are recognized on the line: by the script itself, or the batch it may be in. */
export const SCRIPTS = {
  acquire: [shaOf(EXCLUSIVE_ACQUIRE), BATCH],
  extend: [shaOf(EXCLUSIVE_EXTEND)],
  release: [shaOf(EXCLUSIVE_RELEASE), BATCH],
  forceUnlock: [shaOf(EXCLUSIVE_FORCE_UNLOCK)],
} as const;

export type ScriptName = keyof typeof SCRIPTS;
