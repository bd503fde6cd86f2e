import type { Quirks } from '../quirks.js';
import type { Patch } from './patched-core.js';

/** A deliberate mistake, in a copy of the core or in the simulated store, and the rules that are to notice it. */
export interface Breakage {
  readonly name: string;
  readonly rules: readonly string[];
  readonly patches?: readonly Patch[];
  readonly quirks?: Quirks;
  /** It takes a pause at one certain step to see it: looked for there, and not in seeds. */
  readonly atEachStep?: true;
}
