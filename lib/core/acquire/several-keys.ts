import type { CoreContext } from '../context/core-context.js';
import { lostError, storeError } from '../errors/error-messages.js';
import type { Hold } from '../lease/hold.js';
import type { LeasePart } from '../lease/lease-part.js';
import type { Taken } from '../seam/reply.js';
import { MIN_UNSENT_MS } from '../wait/wait.js';

/** What a call for several keys uses of its service. */
type Core = Pick<CoreContext, 'keeper' | 'requests' | 'runtime' | 'shown' | 'undo'>;

/** Whether a read-write lock has taken the place of an exclusive hold. */
const hasIntruder = ({ heldAs }: Taken): boolean => heldAs === 'read' || heldAs === 'write';

/** Sets one lease for all keys of a call that acquires several. */
export class SeveralKeys {
  constructor(private readonly core: Core) {}

  /** Gives holds that were taken one after the other the fixed lease that was asked for, all from now on. */
  async fixLeases(parts: readonly LeasePart[], leaseMs: number): Promise<void> {
    const own = parts.filter(({ outer }) => !outer).map(({ hold }) => hold);
    const sentAt = this.core.runtime.now();
    await Promise.all(own.map((hold) => this.fixLease(hold, leaseMs, sentAt)));
  }

  /** The first may be gone by the time the last is there. */
  throwIfLost(parts: readonly LeasePart[]): void {
    for (const part of parts) {
      this.core.keeper.checkExpiry(part.hold);
      if (part.state !== 'lost') continue;
      throw lostError(
        this.core.shown(part.key),
        part.hold.claim,
        part.lossReason,
        this.core.runtime.now() - part.hold.grantedAt,
      );
    }
  }

  private async fixLease(hold: Hold, leaseMs: number, sentAt: number): Promise<void> {
    const { core } = this;
    hold.stopRenewing();
    // The owner's own hold is re-armed, also to a shorter time; that brings a new token.
    // All is taken: it is not withdrawn any more, and may be sent for a moment also when the caller's time is over.
    const until = Math.max(hold.claim.until ?? 0, sentAt + MIN_UNSENT_MS);
    const claim = { ...hold.claim, leaseMs, reacquires: true, waits: false, until, withdrawnBy: undefined };
    const reply = await core.requests.acquire(claim).catch((failure: unknown) => {
      core.requests.acquireFailed(claim, failure);
      throw storeError(core.shown(hold.key), failure, 'setting the lease of', core.runtime.now() - sentAt);
    });
    const now = core.runtime.now();
    if (reply.status !== 'granted' || hold.state !== 'held') {
      // The hold was declared lost while this re-arm was under way, and the re-arm renewed it in the store. No lease
      // owns it now.
      if (reply.status === 'granted') core.undo.begin({ claim, until: core.requests.mayLastUntil(claim) });
      hold.lose(reply.status === 'taken' && hasIntruder(reply) ? 'entered' : 'refused');
      throw lostError(core.shown(hold.key), claim, hold.lossReason ?? 'refused', now - hold.grantedAt);
    }
    const { token, validForMs, owner } = reply;
    hold.reacquired(claim, { token, sentAt, validForMs, grantedAt: now, owner });
    core.keeper.schedule(hold);
  }
}
