import { StoreFailure, type StoreOutcome } from '../../../lib/core/seam/store-failure.js';
import type { Session } from '../network/session.js';

/** A failed command, with the session it was sent on: an undo has to know. */
export class SimFailure extends StoreFailure {
  constructor(
    message: string,
    outcome: StoreOutcome,
    options: { transient?: boolean; passing?: boolean; keyOnly?: boolean } = {},
    /** Undefined when the command was never sent. */
    readonly session?: Session,
  ) {
    super(message, outcome, { ...options, cause: new Error(message) });
  }
}
