import type { CoreContext } from './core-context.js';
import type { InFlight } from './in-flight.js';
import type { Stopping } from './service-group.js';
import { withinMs } from './wait-for.js';

/** How long a closing service waits for releases under way; what is left then ends by its lease. */
const LAST_RELEASES_MS = 1_000;

/** How a service instance ends: first for new callers, then for waiters, then for work that runs. */
export class Shutdown implements Stopping {
  private ending: Promise<void> | undefined;
  private graceEndsAt: number | undefined;

  constructor(
    private readonly core: CoreContext,
    private readonly inFlight: InFlight,
  ) {
    core.group.add(this);
  }

  /** Refuses waiters, and new callers from now on. Running work may still take locks, and has all its time. */
  refuseNew(): void {
    if (this.core.phase !== 'open') return;
    this.core.phase = 'stopping';
    this.core.refuseWaiters();
  }

  /**
   * Refuses waiters, gives running work `shutdownGraceMs`, then tells it that its locks are lost. Work under locks of the
   * other services of the group may take locks of this one, so their work is waited for, too. Holds whose work still runs
   * are left to their lease: freeing them would let somebody else in beside it.
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

  hasWork(): boolean {
    const { core, inFlight } = this;
    if (core.phase !== 'stopping') return false;
    // Callers that are turned away now may leave something to give back.
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
