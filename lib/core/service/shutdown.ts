import type { CoreContext } from '../context/core-context.js';
import type { InFlight } from '../util/in-flight.js';
import type { Stopping } from '../context/service-group.js';
import { withinMs } from '../util/wait-for.js';

/** How long a closing service waits for requests in progress, in ms. Other holds then expire. */
const LAST_RELEASES_MS = 1_000;

/** Stops a service instance in three steps: for new callers, for waiters, for running work. */
export class Shutdown implements Stopping {
  private ending: Promise<void> | undefined;
  private graceEndsAt: number | undefined;

  constructor(
    private readonly core: CoreContext,
    private readonly inFlight: InFlight,
  ) {
    core.group.add(this);
  }

  /** Rejects waiters and new callers. Running work may still acquire locks, and has all its time. */
  refuseNew(): void {
    if (this.core.phase !== 'open') return;
    this.core.phase = 'stopping';
    this.core.refuseWaiters();
  }

  /**
   * Rejects waiters, gives running work `shutdownGraceMs`, then reports its locks as lost. It also waits for work of
   * the other services of the group, which may acquire locks of this one. The holds of work that is still running
   * expire: releasing them would let another process work at the same time.
   */
  run(): Promise<void> {
    return (this.ending ??= this.end());
  }

  /** Like {@link run}, and then stops all background work. The store may be closed afterwards. */
  async complete(): Promise<void> {
    await this.run();
    const { asking, undo, keeper, health, process, runtime } = this.core;
    // Work that ends after its grace period releases its holds in the background. A request of a refused waiter may still
    // be granted.
    const quiet = asking.over().then(() => undo.idle());
    await Promise.all([withinMs(quiet, LAST_RELEASES_MS, runtime), process.stop()]);
    undo.stop();
    keeper.stop();
    health.stop();
  }

  hasWork(): boolean {
    const { core, inFlight } = this;
    if (core.phase !== 'stopping') return false;
    // Callers that are rejected now may leave pending releases.
    return this.graceLeftMs() > 0 && inFlight.count + core.undo.size > 0;
  }

  async workOver(): Promise<void> {
    const { core, inFlight } = this;
    const quiet = inFlight.over().then(() => core.undo.idle());
    await withinMs(quiet, this.graceLeftMs(), core.runtime);
  }

  private graceLeftMs(): number {
    const { runtime, settings } = this.core;
    this.graceEndsAt ??= runtime.now() + settings.shutdownGraceMs;
    return this.graceEndsAt - runtime.now();
  }

  private async end(): Promise<void> {
    this.refuseNew();
    const { core } = this;
    await core.group.workOver();
    core.phase = 'closed';
    core.group.remove(this);
    core.refuseWaiters();
    for (const hold of core.keeper.all) hold.lose('shutdown');
  }
}
