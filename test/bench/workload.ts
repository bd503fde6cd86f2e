import type { RedisServer } from '../support/redis-server.js';
import type { Progress } from './report/progress.js';

/** One number that a workload found, as it was in each round. */
export interface Finding {
  readonly what: string;
  /** One value for each round. */
  readonly values: readonly number[];
  readonly unit: Unit;
  /** What it should be; the median counts. Without one it is shown for reading only. */
  readonly target?: { readonly atLeast: number } | { readonly atMost: number };
}

/** `''` is a count. */
export type Unit = '' | 'ratio' | '/s' | 'µs' | 'ms' | '%' | 'MB';

export interface Outcome {
  readonly findings: readonly Finding[];
  /** Sections that were not alone while it was measured; anything but 0 is a broken lock. */
  readonly violations: number;
}

/** What a workload gets to work with. */
export interface Bench {
  readonly server: RedisServer;
  readonly progress: Progress;
  readonly rounds: number;
  readonly cycles: number;
  /** Scales how long things are measured: less in quick mode. */
  readonly pace: number;
}

/** Something that is measured. One file each in workloads/, listed in workloads/index.ts. */
export interface Workload {
  /** For `--only`. */
  readonly name: string;
  readonly title: string;
  run(bench: Bench): Promise<Outcome>;
}
