import { endlessForItselfError, endlessOutOfOrderError } from '../errors/error-messages.js';
import type { LockLogger } from '../lock-events.js';
import type { ShowKey } from '../shown-key.js';
import type { LockCall } from '../settings/lock-call.js';
import { heldAfter, holdsAround } from './section.js';

/**
 * Detects waits of nested calls that can deadlock, with themselves or with callers that take the keys in another order.
 */
export class LockOrder {
  private warned = false;

  constructor(
    private readonly scope: object,
    private readonly logger: LockLogger,
    private readonly shown: ShowKey,
  ) {}

  /** Checks the wait of a nested call. Throws if it could wait without end; warns once of a wait out of order. */
  check(key: string, finalKey: string, { waitMs, permits }: Pick<LockCall, 'waitMs' | 'permits'>): void {
    if (waitMs === Infinity && permits !== undefined && holdsAround(this.scope, finalKey) >= permits) {
      throw endlessForItselfError(this.shown(key), permits);
    }
    const held = heldAfter(this.scope, finalKey);
    if (held === undefined) return;
    if (waitMs === Infinity) throw endlessOutOfOrderError(this.shown(key), this.shown(held));
    if (this.warned) return;
    this.warned = true;
    this.logger.warn(
      `"${this.shown(key)}" is taken while "${this.shown(held)}" is held. Where others take them the other way round, both wait until ` +
        `waitMs is over. Take both at once, or nest them in ascending order. (Said once.)`,
    );
  }
}
