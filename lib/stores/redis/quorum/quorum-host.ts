import type { Runtime } from '../../../core/util/runtime.js';
import type { QuorumNode } from './quorum-node.js';

/** Shared parts of the kinds of one quorum. */
export interface QuorumHost {
  readonly nodes: readonly QuorumNode[];
  /** Number of nodes that have to agree. */
  readonly majority: number;
  readonly runtime: Runtime;
  /** Records the length of a requested lease: a restarted server has to stay out for as long. */
  noteLease(leaseMs: number): void;
  /** Returns a token that all nodes can give now; undefined when their clocks do not tell. */
  proposedToken(): number | undefined;
  /** Runs work that `close` waits for. Rejects when the store is closed. */
  run<T>(work: () => Promise<T>): Promise<T>;
}
