import type { OfClaim, Script } from './script.js';
import type { StoreFailure } from '../../../core/seam/store-failure.js';
import type { ScriptRun, SharedRun } from './script-batch.js';

/** Runs each script on the server that has its first key. */
export interface Commands {
  run<T>(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    read: (reply: unknown) => T,
    claim?: OfClaim,
  ): Promise<T>;
  /** Runs a script that can share a request with other scripts of the same tick. */
  runShared<T>(run: SharedRun, read: (reply: unknown) => T): Promise<T>;
  /** Runs a script like `runShared`, but without a promise: calls `resolve` or `reject` of the run. */
  share(run: ScriptRun): void;
  /** Returns the failure of an acquire that waits behind others. See `KindStore.unsent`. */
  failureOf(name: string, owner: string): StoreFailure | undefined;
}
