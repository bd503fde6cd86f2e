import type { Claim } from '../../../core/seam/claim.js';
import { MAX_PROPOSED_AHEAD, type Proposal } from '../../proposed-token.js';
import { tokensRequested } from './exclusive/entry-text.js';

/** Returns the number of tokens as scripts take it, with the proposal of a quorum: '<tokens>@<least token>'. */
export const tokensArg = (claim: Claim & Proposal): number | string => {
  const tokens = tokensRequested(claim, claim.tokens);
  return claim.leastToken === undefined || tokens <= 0 ? tokens : `${tokens}@${claim.leastToken}`;
};

/** Returns Lua code that reads such an argument: `block` is the number of tokens, and `least` the proposal or nil. */
export const readTokens = (arg: string): string => `local block, least = tonumber(${arg}), nil
if not block then
  local asked, proposed = string.match(${arg}, '^(%d+)@(%d+)$')
  block, least = tonumber(asked), tonumber(proposed)
end`;

/**
 * Returns Lua code that puts the proposal in place of the server's time in µs. It ignores one that is too far ahead: a
 * wrong clock elsewhere would keep tokens ahead of this one for as long as it was off.
 *
 * @param time variable with the server's time
 */
export const orProposed = (time: string): string =>
  `if least and least > ${time} and least <= ${time} + ${MAX_PROPOSED_AHEAD} then ${time} = least end`;
