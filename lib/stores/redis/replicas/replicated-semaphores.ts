import { textOf } from '../../../core/util/describe.js';
import type { Watch, WatchListener } from '../../../core/seam/lock-store.js';
import type { SemaphoreStore } from '../../../core/seam/object-stores.js';
import { RedisFailure } from '../connection/redis-failure.js';
import type { RedisSemaphores } from '../kinds/semaphore/redis-semaphore.js';
import type { Replicas } from './replicas.js';

/**
 * Counting semaphores whose permits count as acquired only once replicas have that. If too few replicas acknowledge,
 * the permits are released. A permit has no owner, so this is an addition, sent only on the session that acquired them.
 * A promoted replica that never had the acquire would otherwise have too many permits from then on.
 */
export class ReplicatedSemaphores implements SemaphoreStore {
  constructor(
    private readonly semaphores: RedisSemaphores,
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

  /** Resolves with the number of acquired permits, once replicas have that. */
  private async confirmed(finalKey: string, take: () => Promise<number>): Promise<number> {
    const confirm = this.replicas.confirming(finalKey);
    const taken = await take();
    if (taken === 0) return 0;
    try {
      await confirm();
    } catch (failure) {
      throw await this.failureAfterReturn(finalKey, taken, failure);
    }
    return taken;
  }

  /** Releases permits that were not acknowledged. Resolves with the failure for the caller. */
  private async failureAfterReturn(finalKey: string, taken: number, failure: unknown): Promise<unknown> {
    if (!(failure instanceof RedisFailure) || !failure.session) return failure;
    const { message, cause, passing, session } = failure;
    try {
      await this.semaphores.returnPermits(session, finalKey, taken);
    } catch (second) {
      const why = `${message}, and giving back what was taken failed: ${textOf(second)}`;
      return new RedisFailure(why, 'unknown', { cause, passing }, session);
    }
    const done = `${message}; what was taken was given back`;
    return new RedisFailure(done, 'not-executed', { cause, passing }, session);
  }
}
