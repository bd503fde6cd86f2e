import type { Watch, WatchListener } from '../../../../core/seam/lock-store.js';
import type { SemaphoreStore } from '../../../../core/seam/object-stores.js';
import { RedisFailure } from '../../connection/redis-failure.js';
import type { RedisSession } from '../../connection/redis-session.js';
import { Script, requestFor } from '../../connection/script.js';
import { readDone, readNumber, readVoid } from '../numbers.js';
import type { RedisLink } from '../redis-link.js';
import {
  SEMAPHORE_ADD,
  SEMAPHORE_DRAIN,
  SEMAPHORE_FREE,
  SEMAPHORE_REMOVE,
  SEMAPHORE_SET,
  SEMAPHORE_TAKE,
} from './scripts.js';

const TAKE_PERMITS = new Script(SEMAPHORE_TAKE);
const ADD = new Script(SEMAPHORE_ADD, [{ word: 'PERMITS', plain: true, keyOnly: true, claimOnly: true }]);
const SET = new Script(SEMAPHORE_SET);
const FREE = new Script(SEMAPHORE_FREE);
const DRAIN = new Script(SEMAPHORE_DRAIN);
const REMOVE = new Script(SEMAPHORE_REMOVE);

export const SEMAPHORE_SCRIPTS: readonly Script[] = [TAKE_PERMITS, ADD, SET, FREE, DRAIN, REMOVE];

/** Counting semaphores in Redis, as Redisson's RSemaphore. */
export class RedisSemaphores implements SemaphoreStore {
  constructor(private readonly link: RedisLink) {}

  take(finalKey: string, permits: number): Promise<boolean> {
    return this.run(TAKE_PERMITS, finalKey, [permits], readDone);
  }

  set(finalKey: string, permits: number): Promise<boolean> {
    return this.run(SET, finalKey, [permits, ...this.announcing(finalKey)], readDone);
  }

  add(finalKey: string, permits: number): Promise<void> {
    return this.run(ADD, finalKey, [permits, ...this.announcing(finalKey)], readVoid);
  }

  /** Releases permits on the session that acquired them. A later one may lead to a server that lacks the acquire. */
  async returnPermits(session: RedisSession, finalKey: string, permits: number): Promise<void> {
    const { topology, keys } = this.link;
    const connection = topology.connectionOf(session);
    if (!connection) throw new RedisFailure('the connection to Redis was lost', 'not-executed', {});
    const args = [permits, ...this.announcing(finalKey)];
    await connection.sendOnlyOn(session, requestFor(ADD, [keys.name(finalKey)], args, readVoid));
  }

  free(finalKey: string): Promise<number> {
    return this.run(FREE, finalKey, [], readNumber);
  }

  drain(finalKey: string): Promise<number> {
    return this.run(DRAIN, finalKey, [], readNumber);
  }

  remove(finalKey: string): Promise<boolean> {
    return this.run(REMOVE, finalKey, [], readDone);
  }

  watch(finalKey: string, listener: WatchListener): Watch {
    return this.link.channels.watch(this.channel(finalKey), listener);
  }

  private run<T>(
    script: Script,
    finalKey: string,
    args: readonly (string | number)[],
    read: (reply: unknown) => T,
  ): Promise<T> {
    const { commands, keys } = this.link;
    return commands.run(script, [keys.name(finalKey)], args, read);
  }

  private announcing(finalKey: string): [channel: string, publish: string] {
    return [this.channel(finalKey), this.link.publish];
  }

  private channel(finalKey: string): string {
    const { keys } = this.link;
    return keys.permitChannel(keys.name(finalKey));
  }
}
