import {
  EXCLUSIVE_ACQUIRE,
  EXCLUSIVE_EXTEND,
  EXCLUSIVE_RELEASE,
} from '../../../lib/stores/redis/scripts/exclusive.js';
import { Script } from '../../../lib/stores/redis/script.js';

/** How a script is recognized on the line. */
export const SCRIPTS = {
  acquire: new Script(EXCLUSIVE_ACQUIRE).sha,
  extend: new Script(EXCLUSIVE_EXTEND).sha,
  release: new Script(EXCLUSIVE_RELEASE).sha,
} as const;

export type ScriptName = keyof typeof SCRIPTS;
