import { NestFactory } from '@nestjs/core';
import { LockModule, LockService, type Holder } from 'nest-redis-lock';
import { lockOptions, type LockPlace } from '../../lock-place.js';
import type { Backend } from '../backend.js';
import type { Parts } from '../parts.js';
import type { Resources } from '../resources.js';

/** What the demo has to know about one store. */
export interface StoreOfDemo {
  /** What the output calls it. */
  readonly title: string;
  /** What differs from other stores, as a sentence for the output. */
  readonly remark?: string;
  /** Number of instances that it can keep apart. Default: any number. */
  readonly maxInstances?: number;
  /** Finds its server, or starts one. */
  readonly findServer: (parts: Parts) => Promise<Backend>;
  /** Opens the locks of the demo itself. What the run leaves in the store is removed with `resources`. */
  readonly open: (place: LockPlace, resources: Resources, keyPrefix: string) => Promise<LockService>;
}

/** What keeps the locks of a run. */
export interface LockDesk {
  /** Name and description for the output. */
  readonly description: string;
  readonly maxInstances: number;
  /** Resolves with the hold of a key: its owner, and how long its lease lasts. Undefined when the key is free. */
  hold(key: string): Promise<Pick<Holder, 'owner' | 'remainingMs'> | undefined>;
}

/** Opens the locks of the demo itself, which it only inspects. */
export const openLocks: StoreOfDemo['open'] = async (place, resources, keyPrefix) => {
  const app = await NestFactory.createApplicationContext(
    LockModule.forRoot({ ...lockOptions(place), keyPrefix }),
    { abortOnError: false, logger: ['error', 'fatal'] },
  );
  resources.defer(() => app.close());
  const locks = app.get(LockService);
  await locks.ping();
  return locks;
};
