import {
  EXCLUSIVE_ACQUIRE,
  EXCLUSIVE_EXTEND,
  EXCLUSIVE_FORCE_UNLOCK,
  EXCLUSIVE_RELEASE,
} from '../../../lib/stores/redis/kinds/exclusive/scripts.js';
import { EXCLUSIVE_BATCH } from '../../../lib/stores/redis/kinds/exclusive/batch.js';
import { Script } from '../../../lib/stores/redis/connection/script.js';

const shaOf = (source: string): string => new Script(source).sha;

/** How the requests that run a script are recognized on the line: by the script itself, or the batch it may be in. */
export const SCRIPTS = {
  acquire: [shaOf(EXCLUSIVE_ACQUIRE), shaOf(EXCLUSIVE_BATCH)],
  extend: [shaOf(EXCLUSIVE_EXTEND)],
  release: [shaOf(EXCLUSIVE_RELEASE), shaOf(EXCLUSIVE_BATCH)],
  forceUnlock: [shaOf(EXCLUSIVE_FORCE_UNLOCK)],
} as const;

export type ScriptName = keyof typeof SCRIPTS;
