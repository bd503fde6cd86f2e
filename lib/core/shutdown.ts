import type { CoreContext } from './core-context.js';
import type { InFlight } from './in-flight.js';
import { withinMs } from './wait-for.js';

/** How long a closing service waits for releases under way; what is left then ends by its lease. */
const LAST_RELEASES_MS = 1_000;

/** How a service instance ends: first for new callers, then for waiters, then for work that runs. */
export class Shutdown {
  private ending: Promise<void> | undefined;

  constructor(
    private readonly core: CoreContext,
    private readonly inFlight: InFlight,
  ) {}

  /** Refuses waiters, and new callers from now on. Running work may still take locks, and has all its time. */
  refuseNew(): void {
    if (this.core.phase !== 'open') return;
    this.core.phase = 'stopping';
    this.core.refuseWaiters();
  }

  /**
   * Refuses waiters, gives running work `shutdownGraceMs`, then tells it that its locks are lost. Holds
   * whose work still runs are left to their lease: freeing them would let somebody else in beside it.
   */
  run(): Promise<void> {
    return (this.ending ??= this.end());
  }

  /** The same, and ends what goes on in the background. The store may be closed then. */
  async complete(): Promise<void> {
    await this.run();
    const { undo, keeper, health, runtime } = this.core;
    // Work that ended after its grace gives its holds back in the background.
    await withinMs(undo.idle(), LAST_RELEASES_MS, runtime);
    undo.stop();
    keeper.stop();
    health.stop();
  }

  private async end(): Promise<void> {
    this.refuseNew();
    const { core } = this;
    // Callers that are turned away now may leave something to give back.
    const quiet = this.inFlight.over().then(() => core.undo.idle());
    await withinMs(quiet, core.settings.shutdownGraceMs, core.runtime);
    core.phase = 'closed';
    core.refuseWaiters();
    for (const hold of core.keeper.all) hold.lose('shutdown');
  }
}
