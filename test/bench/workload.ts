import type { RedisServer } from '../support/servers/redis-server.js';
import type { Comparison, Unit } from './comparison.js';
import type { Crew } from './processes/crew.js';
import type { SharedNetwork } from './processes/network.js';
import type { Chart } from './report/chart/chart.js';
import type { Progress } from '../support/measure/progress.js';

/** One number that a workload found, as it was in each round. */
export interface Finding {
  readonly what: string;
  /** One value for each round. */
  readonly values: readonly number[];
  readonly unit: Unit;
  /** What it should be; the median counts. Without one it is shown for reading only. */
  readonly target?: { readonly atLeast: number } | { readonly atMost: number };
}

export interface Outcome {
  readonly findings: readonly Finding[];
  /** Sections of this library that overlapped another one. Anything but 0 is a broken lock. */
  readonly violations: number;
  /** What it found of the peers. */
  readonly comparison?: Comparison;
}

/** What a workload gets to work with. */
export interface Bench {
  readonly server: RedisServer;
  readonly progress: Progress;
  readonly crew: Crew;
  /** A way to the server on which everything can take longer. */
  readonly network: SharedNetwork;
  readonly rounds: number;
  /** Rounds of what is measured at many points. */
  readonly growthRounds: number;
  readonly cycles: number;
  /** Scales how long things are measured: less in quick mode. */
  readonly pace: number;
  readonly quick: boolean;
}

/** Something that is measured. One file each in workloads/, listed in workloads/index.ts. */
export interface Workload {
  /** For `--only`. */
  readonly name: string;
  readonly title: string;
  /** What its numbers show, and what they do not. For workloads that compare. */
  readonly shows?: string;
  readonly doesNotShow?: string;
  readonly charts?: readonly Chart[];
  run(bench: Bench): Promise<Outcome>;
}
