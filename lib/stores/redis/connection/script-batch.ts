import type { Script } from './script.js';
import type { BatchLetter } from '../kinds/exclusive/batch.js';

/** One run of a script that can also be run as a part of a batch. */
export interface ScriptRun {
  readonly script: Script;
  readonly letter: BatchLetter;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
  /** Throws when no script answers that. */
  readonly read: (reply: unknown) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (failure: unknown) => void;
}

/** How many runs one request carries at most: Redis works on the first while the next are being put together. */
const MOST = 16;

/**
 * Gathers what is to be run within one tick. Replies that come in together set off their next requests in the same
 * tick; sent one by one these would cost more than all the rest of a lock. Nothing is held back for longer.
 */
export class ScriptBatch {
  private runs: ScriptRun[] = [];
  private readonly onTick = (): void => this.flush();

  constructor(private readonly send: (runs: readonly ScriptRun[]) => void) {}

  get isEmpty(): boolean {
    return this.runs.length === 0;
  }

  add(run: ScriptRun): void {
    if (this.runs.length === 0) process.nextTick(this.onTick);
    if (this.runs.push(run) === MOST) this.flush();
  }

  /** Sends what there is. To be called before whatever must not overtake it. */
  flush(): void {
    if (this.runs.length === 0) return;
    const { runs } = this;
    this.runs = [];
    this.send(runs);
  }
}

/** What the batch script takes. */
export const keysAndArgs = (runs: readonly ScriptRun[]): [keys: string[], args: (string | number)[]] => {
  const keys: string[] = [];
  const args: (string | number)[] = [''];
  let letters = '';
  for (const run of runs) {
    letters += run.letter;
    keys.push(...run.keys);
    if (run.letter === 'a' && run.keys.length === 1) keys.push(run.keys[0]!);
    args.push(...run.args);
  }
  args[0] = letters;
  return [keys, args];
};
