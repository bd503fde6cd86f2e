import type { Claim } from '../../core/seam/claim.js';
import { Ballot } from './ballot.js';
import type { NodeGrant } from './node-grants.js';
import { QuorumFailure } from './quorum-failure.js';
import type { QuorumHost } from './quorum-host.js';
import { kindAt } from './quorum-node.js';

/**
 * Makes sure that every later grant has larger tokens than these: the largest token of those that the nodes have given is
 * made known to a majority of nodes, and one counts only if the owner has the key there at that moment. The next owner has
 * to be granted by one of them, after this one's hold has ended there, and so after it knew of the token. Known to just any
 * majority, the token could come to a node that has given the key to the next owner already.
 *
 * Undefined when the key is the owner's no longer at too many nodes.
 */
export const commitTokens = async (
  host: QuorumHost,
  claim: Claim,
  grants: readonly NodeGrant[],
): Promise<number | undefined> => {
  const { majority } = host;
  const first = Math.max(...grants.map(({ grant }) => grant.token!));
  const last = first + (claim.tokens - 1);
  const asked = new Ballot<boolean>(
    grants.map(({ node }) => node),
    (node) => {
      // Who has given it knows it.
      const own = grants.find((one) => one.node === node)!.grant.token!;
      if (own === first) return Promise.resolve(true);
      return node.ask(() => kindAt(node, claim.kind).commit!(claim, last));
    },
  );
  const most = grants.length - majority;
  const isDone = (done: boolean): boolean => done;
  await asked.until((answers) => {
    const done = answers.filter(isDone).length;
    return done >= majority || answers.length - done > most;
  });
  if (asked.answers.filter(isDone).length >= majority) return first;
  if (asked.failures.size === 0 || asked.answers.some((done) => !done)) return undefined;
  throw new QuorumFailure(asked.failures, host, 'unknown');
};
