import type { LockLogger } from '../report/lock-events.js';
import type { ShowKey } from '../util/shown-key.js';
import { partAround } from './section.js';

/** Detects waits inside sections that can deadlock with callers that take the keys in another order. */
export class LockOrder {
  private warned = false;

  constructor(
    private readonly scope: object,
    private readonly logger: LockLogger,
    private readonly shown: ShowKey,
  ) {}

  /** Warns once of a wait for a key that sorts before one that a section around holds. */
  check(key: string, finalKey: string): void {
    if (this.warned) return;
    const held = partAround(this.scope, (part) => part.finalKey > finalKey)?.key;
    if (held === undefined) return;
    this.warned = true;
    this.logger.warn(
      `"${this.shown(key)}" is taken while "${this.shown(held)}" is held. Where others take them the other way round, both wait until ` +
        `waitMs is over. Take both at once, or nest them in ascending order. (Said once.)`,
    );
  }
}
