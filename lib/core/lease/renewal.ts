import type { Claim } from '../seam/claim.js';
import type { Hold } from './hold.js';

/** Returns the claim of a request to extend a hold. It is pointless once the hold has ended. */
export const renewalOf = ({ claim, validUntil }: Hold, leaseMs: number): Claim => ({
  ...claim,
  ...{ leaseMs, tokens: 0, until: validUntil },
});
