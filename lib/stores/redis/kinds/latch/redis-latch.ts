import type { Watch, WatchListener } from '../../../../core/seam/lock-store.js';
import type { LatchStore } from '../../../../core/seam/object-stores.js';
import { RedisFailure } from '../../connection/redis-failure.js';
import { hashSlot } from '../../hash-slot.js';
import { Script } from '../../connection/script.js';
import { readDone, readNumber, readVoid } from '../numbers.js';
import type { RedisLink } from '../redis-link.js';
import { LATCH_COUNT, LATCH_COUNT_DOWN, LATCH_REMOVE, LATCH_SET } from './scripts.js';

const SET = new Script(LATCH_SET);
const COUNT_DOWN = new Script(LATCH_COUNT_DOWN);
const COUNT = new Script(LATCH_COUNT);
const REMOVE = new Script(LATCH_REMOVE);

export const LATCH_SCRIPTS: readonly Script[] = [SET, COUNT_DOWN, COUNT, REMOVE];

/** Countdown latches in Redis, as Redisson's RCountDownLatch. */
export class RedisLatches implements LatchStore {
  constructor(private readonly link: RedisLink) {}

  set(finalKey: string, count: number): Promise<boolean> {
    return this.run(SET, finalKey, [count, ...this.announcing(finalKey)], readDone);
  }

  countDown(finalKey: string): Promise<void> {
    return this.run(COUNT_DOWN, finalKey, this.announcing(finalKey), readVoid);
  }

  count(finalKey: string): Promise<number> {
    return this.run(COUNT, finalKey, [], (reply) => Math.max(0, readNumber(reply)));
  }

  remove(finalKey: string): Promise<boolean> {
    return this.run(REMOVE, finalKey, this.announcing(finalKey), readDone);
  }

  watch(finalKey: string, listener: WatchListener): Watch {
    return this.link.channels.watch(this.channel(finalKey), listener);
  }

  private async run<T>(
    script: Script,
    finalKey: string,
    args: readonly (string | number)[],
    read: (reply: unknown) => T,
  ): Promise<T> {
    const { commands, keys, publish } = this.link;
    if (publish === 'SPUBLISH') this.checkSlots(finalKey);
    return commands.run(script, [keys.name(finalKey)], args, read);
  }

  /** Rejects a name with braces: Redisson puts braces around it, so the channel may be in another slot. */
  private checkSlots(finalKey: string): void {
    if (hashSlot(this.channel(finalKey)) === hashSlot(this.link.keys.name(finalKey))) return;
    throw new RedisFailure(
      'a latch of this name cannot work in a Redis Cluster with sharded Pub/Sub: the channel on which Redisson announces it ' +
        'is in another slot. Choose a name without braces',
      'not-executed',
      { keyOnly: true },
    );
  }

  private announcing(finalKey: string): [channel: string, publish: string] {
    return [this.channel(finalKey), this.link.publish];
  }

  private channel(finalKey: string): string {
    const { keys } = this.link;
    return keys.latchChannel(keys.name(finalKey));
  }
}
