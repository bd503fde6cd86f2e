import type { Patch } from './broken-library.js';
import type { DirectedStage } from './directed-stage.js';

/** A deliberate mistake in a copy of the library, and a short schedule in which it does harm. */
export interface Breakage {
  readonly name: string;
  readonly patches: readonly Patch[];
  /** Rules of the checker, one of which has to see it. */
  readonly seenBy: readonly string[];
  /** With the library as it is, nothing is wrong with this. */
  play(stage: DirectedStage): Promise<void>;
}
