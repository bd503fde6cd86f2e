import type { Claim } from '../../core/seam/claim.js';
import type { Grant } from '../../core/seam/grant.js';
import type { AcquireReply } from '../../core/seam/reply.js';
import type { StoreFailure } from '../../core/seam/store-failure.js';
import type { Ballot, Vote } from './ballot.js';
import type { QuorumNode } from './quorum-node.js';

export interface NodeGrant {
  readonly node: QuorumNode;
  readonly grant: Grant;
}

export const isGrant = (reply: AcquireReply): reply is Grant => reply.status === 'granted';

export const isNotExecuted = ({ outcome }: StoreFailure): boolean => outcome === 'not-executed';

/** Returns the nodes that have granted so far, in the order of their replies. */
export const granting = ({ votes }: Ballot<AcquireReply>): readonly NodeGrant[] => {
  const grants: NodeGrant[] = [];
  for (const vote of votes) {
    if (vote.status === 'answered' && isGrant(vote.answer)) {
      grants.push({ node: vote.node, grant: vote.answer });
    }
  }
  return grants;
};

/** Returns the failure that leaves it unknown whether the node has granted the key. */
export const doubtOf = (vote: Vote<AcquireReply>): StoreFailure | undefined =>
  vote.status === 'failed' && !isNotExecuted(vote.failure) ? vote.failure : undefined;

/** Returns the claim for one node. It must not be queued there: waiters wait for all nodes. */
export const asNode = <C extends Claim>(claim: C, owner: string): C => ({
  ...claim,
  owner,
  waits: false,
  place: undefined,
  unlined: true,
});
