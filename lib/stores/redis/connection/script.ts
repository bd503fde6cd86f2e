import { createHash } from 'node:crypto';
import type { Urgency } from '../../load/request-queue.js';

/** An error with which a script itself replies. */
export interface ScriptRefusal {
  /** First word of the error. */
  readonly word: string;
  /** Whether the rest of the error is a complete message for people. */
  readonly plain?: boolean;
  /** See `StoreFailure`. */
  readonly keyOnly?: boolean;
  readonly claimOnly?: boolean;
}

/** A Lua script and the SHA-1 hash under which a server caches it. */
export class Script {
  readonly sha: string;

  constructor(
    readonly source: string,
    readonly refusals: readonly ScriptRefusal[] = [],
    /** How soon it is sent when requests wait. */
    readonly urgency: Urgency = 'other',
  ) {
    this.sha = createHash('sha1').update(source).digest('hex');
  }
}
