import { EXCLUSIVE_ACQUIRE, EXCLUSIVE_RELEASE } from './scripts.js';

/** How the scripts that can be part of a batch are told apart: one letter for each. */
export type BatchLetter = 'a' | 'r';

/**
 * Runs several acquires and releases, one after the other, as if each had been sent by itself.
 *
 * Algorithm: the very scripts, as functions. An error of one is its answer, and does not concern the others.
 *
 * KEYS  those of the first, then those of the second, and so on; an acquire has two: without tokens, the hold twice
 * ARGV[1] a letter for each: 'a' acquire, 'r' release
 * ARGV[2...] three for each: owner, lease in ms, number of tokens; or owner, channel, PUBLISH or SPUBLISH
 * Reply: list, for each: what it replies, or a list with one string: its error
 */
export const EXCLUSIVE_BATCH = `
local function acquire(KEYS, ARGV)
${EXCLUSIVE_ACQUIRE}
end
local function release(KEYS, ARGV)
${EXCLUSIVE_RELEASE}
end
local replies = {}
local k = 1
for i = 1, #ARGV[1] do
  local args = { ARGV[3 * i - 1], ARGV[3 * i], ARGV[3 * i + 1] }
  local done, reply
  if string.sub(ARGV[1], i, i) == 'a' then
    done, reply = pcall(acquire, { KEYS[k], KEYS[k + 1] }, args)
    k = k + 2
  else
    done, reply = pcall(release, { KEYS[k] }, args)
    k = k + 1
  end
  if type(reply) == 'table' then reply = { reply.err } elseif not done then reply = { reply } end
  replies[i] = reply
end
return replies
`;
