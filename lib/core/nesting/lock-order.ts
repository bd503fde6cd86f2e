import { endlessOutOfOrderError } from '../errors/error-messages.js';
import type { LockLogger } from '../lock-events.js';
import { heldAfter } from './section.js';

/** Nested locks in another order than everybody else's can deadlock across callers. */
export class LockOrder {
  private warned = false;

  constructor(
    private readonly scope: object,
    private readonly logger: LockLogger,
  ) {}

  /** Throws where a caller would wait without end out of order, and warns of other such waits, once. */
  check(key: string, finalKey: string, waitMs: number): void {
    const held = heldAfter(this.scope, finalKey);
    if (held === undefined) return;
    if (waitMs === Infinity) throw endlessOutOfOrderError(key, held);
    if (this.warned) return;
    this.warned = true;
    this.logger.warn(
      `"${key}" is taken while "${held}" is held. Where others take them the other way round, both wait until ` +
        `waitMs is over. Take both at once, or nest them in ascending order. (Said once.)`,
    );
  }
}
