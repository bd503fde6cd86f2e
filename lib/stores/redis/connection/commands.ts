import type { Script } from './script.js';
import type { ScriptRun } from './script-batch.js';

/** Runs each script on the server that has its first key. */
export interface Commands {
  run<T>(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    read: (reply: unknown) => T,
  ): Promise<T>;
  /** Runs a script that can share a request with other scripts of the same tick. */
  runShared<T>(
    run: Pick<ScriptRun, 'part' | 'keys' | 'batchKeys' | 'args'>,
    read: (reply: unknown) => T,
  ): Promise<T>;
  /** Runs a script like `runShared`, but without a promise: calls `resolve` or `reject` of the run. */
  share(run: ScriptRun): void;
}
