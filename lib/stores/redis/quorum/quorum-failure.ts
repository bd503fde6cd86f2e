import { textOf } from '../../../core/errors/describe.js';
import { StoreFailure, type StoreOutcome } from '../../../core/seam/store-failure.js';
import type { QuorumNode } from './quorum-node.js';

/** The failure of a quorum call: too few nodes replied. `cause` is an `AggregateError` with those of the nodes. */
export class QuorumFailure extends StoreFailure {
  // Private: a log that shows all of an error would show the nodes, with their clients and the keys of earlier calls.
  readonly #byNode: ReadonlyMap<QuorumNode, StoreFailure>;

  constructor(
    byNode: ReadonlyMap<QuorumNode, StoreFailure>,
    { nodes, majority }: { readonly nodes: readonly QuorumNode[]; readonly majority: number },
    outcome: StoreOutcome,
  ) {
    const failures = [...byNode];
    const each = failures.map(([node, failure]) => `${node.name}: ${withCause(failure)}`).join('; ');
    const all = failures.map(([, failure]) => failure);
    // With no more failures than this, a majority has replied but disagrees: nodes may have lost what it had.
    const most = nodes.length - majority;
    const others = failures.length > most ? '' : ', the others do not agree';
    const overloaded = all.filter((failure) => failure.overloaded).length;
    super(
      `${failures.length} of ${nodes.length} nodes failed${others}, and ${majority} have to agree: ${each}`,
      outcome,
      {
        cause: new AggregateError(all, 'nodes failed'),
        transient: all.every(({ transient }) => transient),
        overloaded: overloaded > 0 && all.length - overloaded <= most,
        passing: all.filter(({ passing }) => !passing).length <= most,
        keyOnly: all.every(({ keyOnly }) => keyOnly),
        claimOnly: all.every(({ claimOnly }) => claimOnly),
      },
    );
    this.#byNode = byNode;
  }

  /** Failures by node. */
  get byNode(): ReadonlyMap<QuorumNode, StoreFailure> {
    return this.#byNode;
  }
}

const withCause = (failure: StoreFailure): string =>
  failure.cause === undefined ? textOf(failure) : `${textOf(failure)} (${textOf(failure.cause)})`;
