import type { StoreName } from '../../lock-place.js';
import type { StoreOfDemo } from './lock-desk.js';
import { memory } from './memory.desk.js';
import { mysql } from './mysql.desk.js';
import { postgres } from './postgres.desk.js';
import { redis } from './redis.desk.js';
import { zookeeper } from './zookeeper.desk.js';

/** The stores of the demo. A new one is a file here, and its options in `lock-place.ts`. */
export const STORES: Readonly<Record<StoreName, StoreOfDemo>> = { redis, mysql, postgres, zookeeper, memory };
