import type { Claim } from '../../../core/seam/claim.js';
import type { Grant } from '../../../core/seam/grant.js';
import type { AcquireReply } from '../../../core/seam/reply.js';
import type { StoreFailure } from '../../../core/seam/store-failure.js';
import type { AtNode } from './node-store.js';
import type { QuorumCall, NodeReply } from './quorum-call.js';
import type { QuorumNode } from './quorum-node.js';

export interface NodeGrant {
  readonly node: QuorumNode;
  readonly grant: Grant;
}

export const isGrant = (reply: AcquireReply): reply is Grant => reply.status === 'granted';

export const isNotExecuted = ({ outcome }: StoreFailure): boolean => outcome === 'not-executed';

/** Returns the nodes that have granted so far, in the order of their replies. */
export const granting = ({ nodeReplies }: QuorumCall<AcquireReply>): readonly NodeGrant[] => {
  const grants: NodeGrant[] = [];
  for (const nodeReply of nodeReplies) {
    if (nodeReply.status === 'answered' && isGrant(nodeReply.reply)) {
      grants.push({ node: nodeReply.node, grant: nodeReply.reply });
    }
  }
  return grants;
};

/** Returns the failure that leaves it unknown whether the node has granted the key. */
export const doubtOf = (nodeReply: NodeReply<AcquireReply>): StoreFailure | undefined =>
  nodeReply.status === 'failed' && !isNotExecuted(nodeReply.failure) ? nodeReply.failure : undefined;

/** Returns the claim for the nodes. It must not be queued there: waiters wait for all nodes. */
export const asNode = <C extends Claim>(claim: C, owner: string, leastToken?: number): C & AtNode => {
  const requested = { ...claim, owner, waits: false, entryTerms: undefined };
  return { ...requested, noQueue: true, leastToken };
};
