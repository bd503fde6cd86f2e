import type { Watch, WatchListener } from '../../../core/seam/lock-store.js';
import type { SemaphoreStore } from '../../../core/seam/object-stores.js';
import type { Replicas } from './replicas.js';

/**
 * Counting semaphores whose permits count as taken only once replicas know of it. Nothing names who took them, so what
 * too few acknowledged is given back as a number.
 */
export class ReplicatedSemaphores implements SemaphoreStore {
  constructor(
    private readonly semaphores: SemaphoreStore,
    private readonly replicas: Replicas,
  ) {}

  async take(finalKey: string, permits: number): Promise<boolean> {
    const take = async (): Promise<number> => ((await this.semaphores.take(finalKey, permits)) ? permits : 0);
    return (await this.confirmed(finalKey, take)) > 0;
  }

  set(finalKey: string, permits: number): Promise<boolean> {
    return this.semaphores.set(finalKey, permits);
  }

  add(finalKey: string, permits: number): Promise<void> {
    return this.semaphores.add(finalKey, permits);
  }

  free(finalKey: string): Promise<number> {
    return this.semaphores.free(finalKey);
  }

  drain(finalKey: string): Promise<number> {
    return this.confirmed(finalKey, () => this.semaphores.drain(finalKey));
  }

  remove(finalKey: string): Promise<boolean> {
    return this.semaphores.remove(finalKey);
  }

  watch(finalKey: string, listener: WatchListener): Watch {
    return this.semaphores.watch(finalKey, listener);
  }

  /** How many were taken, once replicas know of it. */
  private async confirmed(finalKey: string, take: () => Promise<number>): Promise<number> {
    const confirm = this.replicas.confirming(finalKey);
    const taken = await take();
    if (taken === 0) return 0;
    try {
      await confirm();
      return taken;
    } catch (failure) {
      // When that fails, too, they are gone as those of a process that has crashed; the failure that is told is the first.
      await this.semaphores.add(finalKey, taken).catch(() => undefined);
      throw failure;
    }
  }
}
