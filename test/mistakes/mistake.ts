import type { DirectedStage } from '../faults/directed/directed-stage.js';
import type { RedisStage } from '../faults/on-redis/redis-stage.js';
import type { FaultKind } from '../simulation/plan/plan.js';
import type { Quirks } from '../simulation/quirks.js';
import type { Edit } from './source/edit.js';

/** How the simulation plays a mistake. */
export interface InSimulation {
  /** Rules of the checker, one of which has to see it. */
  readonly rules: readonly string[];
  /** The same mistake in what the simulation has in place of a clock; then nothing is edited. */
  readonly quirks?: Quirks;
  /** It takes one of these faults, or such locks, to see it: other seeds are passed over. */
  readonly faults?: readonly FaultKind[];
  readonly locks?: 'readWrite' | 'fair';
  /** It takes a pause at one certain step to see it: looked for there, in the plan for this, and not in seeds. */
  readonly atEachStep?: 'locks' | 'permits' | 'readWrite' | 'objects';
}

/** How the laboratory plays a mistake. */
export interface InLaboratory {
  /** Rules of the checker, one of which has to see it. */
  readonly rules: readonly string[];
  /** A short schedule in which it does harm. With the library as it is, nothing is wrong with this. */
  play(stage: DirectedStage): Promise<void>;
}

/** How a mistake is played on a real server, where it takes no fault and no checker to see it. */
export interface OnRedis {
  /** What the mistake makes fail, with an `AssertionError`. With the library as it is, nothing does. */
  play(stage: RedisStage): Promise<void>;
}

/** A deliberate mistake, and where it has to be noticed. */
export interface Mistake {
  /** What somebody would have done wrong. */
  readonly name: string;
  /** The mistake itself, in a copy of the library. */
  readonly edits?: readonly Edit[];
  readonly simulation?: InSimulation;
  readonly laboratory?: InLaboratory;
  readonly onRedis?: OnRedis;
}

export type SimulatedMistake = Mistake & Required<Pick<Mistake, 'simulation'>>;
export type LaboratoryMistake = Mistake & Required<Pick<Mistake, 'laboratory' | 'edits'>>;
export type MistakeOnRedis = Mistake & Required<Pick<Mistake, 'onRedis' | 'edits'>>;
