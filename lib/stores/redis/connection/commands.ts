import type { Script } from './script.js';
import type { ScriptRun } from './script-batch.js';

/** Runs scripts, each on the server that has its first key. */
export interface Commands {
  /** Runs a script and reads the reply. */
  run<T>(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    read: (reply: unknown) => T,
  ): Promise<T>;
  /** The same for a script that can share a request with others of its tick. */
  runShared<T>(
    run: Pick<ScriptRun, 'part' | 'keys' | 'batchKeys' | 'args'>,
    read: (reply: unknown) => T,
  ): Promise<T>;
  /** The same without a promise: the run itself is told. */
  share(run: ScriptRun): void;
}
