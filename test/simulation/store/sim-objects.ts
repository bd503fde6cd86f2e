import type { Watch, WatchListener } from '../../../lib/core/seam/lock-store.js';
import type { LatchStore, SemaphoreStore } from '../../../lib/core/seam/object-stores.js';
import type { NumberCommand } from '../server/commands.js';
import type { SimConnection } from './sim-connection.js';
import type { SimSubscriber } from './sim-subscriber.js';

/** What semaphores and latches share: a number under a key, and messages about it. */
class SimNumbers {
  constructor(
    private readonly connection: SimConnection,
    private readonly subscriber: SimSubscriber,
  ) {}

  set(key: string, amount: number): Promise<boolean> {
    return this.send('set', key, amount);
  }

  remove(key: string): Promise<boolean> {
    return this.send('remove', key);
  }

  watch(key: string, listener: WatchListener): Watch {
    return this.subscriber.watch(
      key,
      () => listener.notified(),
      (failure) => listener.failed(failure),
    );
  }

  protected send<T extends number | boolean>(
    what: NumberCommand['what'],
    key: string,
    amount = 0,
  ): Promise<T> {
    return this.connection.send<T>({ name: 'number', what, key, amount });
  }
}

/** What the Redis store does for semaphores, over the simulated connections. */
export class SimSemaphores extends SimNumbers implements SemaphoreStore {
  take(key: string, permits: number): Promise<boolean> {
    return this.send('take', key, permits);
  }

  async add(key: string, permits: number): Promise<void> {
    await this.send('add', key, permits);
  }

  free(key: string): Promise<number> {
    return this.send('look', key);
  }

  drain(key: string): Promise<number> {
    return this.send('drain', key);
  }
}

/** The same for latches. */
export class SimLatches extends SimNumbers implements LatchStore {
  async countDown(key: string): Promise<void> {
    await this.send('countDown', key);
  }

  count(key: string): Promise<number> {
    return this.send('look', key);
  }
}
