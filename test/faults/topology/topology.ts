import type { HistoryEvent } from '../../checker/history.js';
import type { Scribe } from '../history/scribe.js';
import type { RedisNode } from './redis-node.js';
import type { Seat } from './seat.js';

/** What a laboratory is made of. Faults act on it, workloads run on it; neither knows more of it than this. */
export interface Topology extends AsyncDisposable {
  readonly name: string;
  /** The servers; a single one, or those of a quorum or cluster. */
  readonly nodes: readonly RedisNode[];
  /** The workers, each with a line of its own. */
  readonly seats: readonly Seat[];
  readonly scribe: Scribe;
  /** What faults the topology is fit for. */
  readonly fitness: Fitness;
  /** Ends whatever is still wrong: lines, servers, empty seats. */
  heal(): Promise<void>;
  /** What happened since the last time, in all processes. */
  takeHistory(): HistoryEvent[];
}

export interface Fitness {
  readonly seats: number;
  readonly nodes: number;
  /** A server that is killed has its data afterwards. */
  readonly keepsData: boolean;
  readonly settableClock: boolean;
}
