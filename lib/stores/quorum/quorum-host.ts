import type { Runtime } from '../../core/runtime.js';
import type { Leftovers } from './leftovers.js';
import type { QuorumNode } from './quorum-node.js';

/** What the kinds of one quorum share. */
export interface QuorumHost {
  readonly nodes: readonly QuorumNode[];
  /** How many nodes have to agree. */
  readonly majority: number;
  readonly runtime: Runtime;
  readonly leftovers: Leftovers;
  /** At least 0, below 1. */
  random(): number;
  /** A hold is asked for that lives so long: a server that restarts has to stay out for as long. */
  asksFor(leaseMs: number): void;
  /** Resolves after so many ms, and keeps no process alive. */
  pause(ms: number): Promise<void>;
  /** Counts what is under way, so that it can be waited for; refuses it when the store is closed. */
  run<T>(work: () => Promise<T>): Promise<T>;
}
