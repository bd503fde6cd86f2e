import type { Claim } from '../../../core/seam/claim.js';
import type { Grant } from '../../../core/seam/grant.js';
import type { AcquireReply } from '../../../core/seam/reply.js';
import { StoreFailure } from '../../../core/seam/store-failure.js';
import { type QuorumCall, QuorumFailure } from './quorum-call.js';
import { granting, isGrant } from './node-grants.js';
import type { QuorumHost } from './quorum-host.js';
import { kindAt, type QuorumNode } from './quorum-node.js';

/**
 * Makes every later grant have larger tokens than these: commits the largest token of the granting nodes to a majority.
 * Resolves with the first token; undefined when the owner has the key at too few nodes.
 *
 * A commit counts only if the owner has the key at that node at that moment. One of these nodes has to grant the key to
 * the next owner. It does so after this owner's hold has ended there, so it knows the token by then. A commit to just
 * any majority could reach a node that has already granted the key to the next owner.
 *
 * A node that grants late gets the commit as well, because another one may have failed since it granted.
 *
 * @param quorumCall the acquire, granted by a majority
 */
export const commitTokens = (
  host: QuorumHost,
  claim: Claim,
  quorumCall: QuorumCall<AcquireReply>,
): Promise<number | undefined> => {
  const { nodes, majority } = host;
  const first = Math.max(...granting(quorumCall).map(({ grant }) => grant.token!));
  const last = first + (claim.tokens - 1);
  const failures = new Map<QuorumNode, StoreFailure>();
  let known = 0;
  let out = 0;
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      if (known >= majority) resolve(first);
      else if (out <= nodes.length - majority) return;
      else if (failures.size > nodes.length - majority) reject(new QuorumFailure(failures, host, 'unknown'));
      else resolve(undefined);
    };
    const count = (isKnown: boolean): void => {
      if (isKnown) known += 1;
      else out += 1;
      settle();
    };
    const failed = (node: QuorumNode, failure: unknown): void => {
      if (!(failure instanceof StoreFailure)) return reject(failure);
      failures.set(node, failure);
      count(false);
    };
    const commitAt = (node: QuorumNode, { token }: Grant): void => {
      // The node that gave the largest token knows it already.
      if (token === first) return count(true);
      node
        .request(() => kindAt(node, claim.kind).commit!(claim, last))
        .then(count, (failure: unknown) => failed(node, failure));
    };
    quorumCall.onEach((nodeReply) => {
      if (nodeReply.status === 'failed') failed(nodeReply.node, nodeReply.failure);
      else if (isGrant(nodeReply.reply)) commitAt(nodeReply.node, nodeReply.reply);
      else count(false);
    });
  });
};
