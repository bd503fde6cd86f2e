/** Maximum distance of a proposal from the clock of a node, in µs, as tokens are: one second. */
export const MAX_PROPOSED_AHEAD = 1_000_000;

/** What a quorum proposes to its nodes, so that all of them give the same token. */
export interface Proposal {
  /** Least fencing token to give. The node ignores one that is too far ahead of its clock. */
  readonly leastToken?: number | undefined;
}

/**
 * Returns where the tokens of a grant begin: at the node's clock, or at the proposal. A proposal of a wrong clock would
 * keep tokens ahead of the clock for as long as that was off.
 */
export const proposedOr = (clock: number, { leastToken }: Proposal): number =>
  leastToken !== undefined && leastToken > clock && leastToken <= clock + MAX_PROPOSED_AHEAD
    ? leastToken
    : clock;
