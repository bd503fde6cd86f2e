import type { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import type { Watch, WatchListener } from '../../../lib/core/seam/watch.js';
import { until } from '../../support/async.js';

/** A watcher of an object that counts its hints. */
export class ObjectWatch {
  wakeUps = 0;
  readonly failures: StoreFailure[] = [];
  private readonly watch: Watch;

  private constructor(watch: (listener: WatchListener) => Watch) {
    this.watch = watch({
      notified: () => void (this.wakeUps += 1),
      failed: (cause) => void this.failures.push(cause),
    });
  }

  /** Watches, and returns when the subscription is live and has said so. */
  static async live(watch: (listener: WatchListener) => Watch): Promise<ObjectWatch> {
    const one = new ObjectWatch(watch);
    await until(() => one.wakeUps > 0 && one.watch.live);
    return one;
  }

  /** Does the work, and resolves when it was hinted at. */
  async wokenBy(work: () => Promise<unknown>): Promise<void> {
    const before = this.wakeUps;
    await work();
    await until(() => this.wakeUps > before, { what: 'a hint' });
  }

  close(): void {
    this.watch.close();
  }
}
