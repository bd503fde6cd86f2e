import {
  EXCLUSIVE_ACQUIRE,
  EXCLUSIVE_EXTEND,
  EXCLUSIVE_FORCE_UNLOCK,
  EXCLUSIVE_RELEASE,
} from '../../../lib/stores/redis/kinds/exclusive/scripts.js';
import {
  QUEUE_ACQUIRE,
  QUEUE_FORCE_UNLOCK,
  QUEUE_KEEP,
  QUEUE_RELEASE,
} from '../../../lib/stores/redis/kinds/exclusive/queue-scripts.js';
import { batchOf } from '../../../lib/stores/redis/connection/script-batch.js';
import { FAIR_ACQUIRE, FAIR_KEEP, FAIR_RELEASE } from '../../../lib/stores/redis/kinds/fair/scripts.js';
import { LATCH_COUNT_DOWN } from '../../../lib/stores/redis/kinds/latch/redis-latch.js';
import { PERMIT_ACQUIRE } from '../../../lib/stores/redis/kinds/permit/scripts.js';
import {
  READ_ACQUIRE,
  READ_WRITE_EXTEND,
  READ_WRITE_KEEP,
  READ_WRITE_RELEASE,
  WRITE_ACQUIRE,
} from '../../../lib/stores/redis/kinds/read-write/scripts.js';
import { SEMAPHORE_ADD, SEMAPHORE_TAKE } from '../../../lib/stores/redis/kinds/semaphore/redis-semaphore.js';
import { Script } from '../../../lib/stores/redis/connection/script.js';
import { BATCH_PARTS, FORCE_UNLOCK } from '../../../lib/stores/redis/kinds/any-kind.js';

const shaOf = (source: string): string => new Script(source).sha;
const TO_READ_OR_WRITE = [shaOf(READ_ACQUIRE), shaOf(WRITE_ACQUIRE)];
const BATCH = batchOf(BATCH_PARTS).sha;

/** How the requests that run a script are recognized on the line: by the script itself, or the batch it may be in. */
export const SCRIPTS = {
  acquire: [shaOf(EXCLUSIVE_ACQUIRE), shaOf(QUEUE_ACQUIRE), shaOf(FAIR_ACQUIRE), ...TO_READ_OR_WRITE, BATCH],
  extend: [shaOf(EXCLUSIVE_EXTEND), shaOf(READ_WRITE_EXTEND)],
  release: [
    shaOf(EXCLUSIVE_RELEASE),
    shaOf(QUEUE_RELEASE),
    shaOf(FAIR_RELEASE),
    shaOf(READ_WRITE_RELEASE),
    BATCH,
  ],
  keep: [shaOf(QUEUE_KEEP), shaOf(FAIR_KEEP), shaOf(READ_WRITE_KEEP)],
  permit: [shaOf(PERMIT_ACQUIRE)],
  take: [SEMAPHORE_TAKE.sha],
  give: [SEMAPHORE_ADD.sha],
  countDown: [LATCH_COUNT_DOWN.sha],
  forceUnlock: [shaOf(EXCLUSIVE_FORCE_UNLOCK), shaOf(QUEUE_FORCE_UNLOCK), FORCE_UNLOCK.sha],
} as const;

export type ScriptName = keyof typeof SCRIPTS;
