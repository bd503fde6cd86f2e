import { endlessForItselfError, heldAroundText } from '../errors/error-messages.js';
import { isTaken } from '../errors/lock.errors.js';
import type { LeasePart } from '../lease/lease-part.js';
import type { LockLogger } from '../report/lock-events.js';
import type { LockCall } from '../settings/lock-call.js';
import type { ShowKey } from '../util/shown-key.js';
import { partAround } from './section.js';

/** More pairs than an app has methods that call each other: the set stays bounded. */
const MAX_PAIRS = 1_000;

/**
 * Detects calls for a key that a section of their asynchronous context holds. Such a call is a part of that section, or a
 * task of a shared queue that runs in its context by chance: nothing tells one from the other. So it is an ordinary
 * caller, and a warning names both.
 */
export class HeldAround {
  private readonly warned = new Set<string>();

  constructor(
    private readonly scope: object,
    private readonly logger: LockLogger,
    private readonly shown: ShowKey,
  ) {}

  /**
   * Returns the part of the context that the call may wait for; undefined without one. Warns once for each pair of labels.
   *
   * @param entered part of the outer lease that the call is proven inside of
   * @throws LockNotAcquiredError if it could wait for itself without end
   */
  check(key: string, { waitMs, label, kind }: LockCall, entered?: LeasePart): LeasePart | undefined {
    const around = partAround(this.scope, (part) => part.key === key);
    // A proven call waits for its own caller only if that is nested in the same lease.
    if (!around || (entered && !around.isInside(entered))) return undefined;
    if (waitMs === Infinity)
      throw endlessForItselfError(
        this.shown(key),
        { label: around.label, heldAs: around.hold.claim.kind },
        kind,
      );
    const pair = JSON.stringify([around.label, label]);
    if (!this.warned.has(pair)) {
      for (const oldest of this.warned) {
        if (this.warned.size < MAX_PAIRS) break;
        this.warned.delete(oldest);
      }
      this.warned.add(pair);
      this.logger.warn(
        `"${label}" asks for "${this.shown(key)}", and ${heldAroundText(around.label, kind)} (Said once for these two.)`,
      );
    }
    return around;
  }

  /** Adds to the error of a taken key that the context of the call holds it, and returns the error. */
  explain(error: unknown, around: LeasePart | undefined, { kind }: LockCall): unknown {
    if (around && isTaken(error) && error.code === 'LOCK_TAKEN') {
      error.message += ` And ${heldAroundText(around.label, kind)}`;
      Object.assign(error, { heldAround: true } satisfies Partial<typeof error>);
    }
    return error;
  }
}
