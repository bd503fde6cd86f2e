import { Script } from '../connection/script.js';
import type { BatchPart } from '../connection/script-batch.js';

/**
 * Makes later fencing tokens of a slot larger than a token that another server has given, if its owner has the hold.
 *
 * Algorithm: while the owner's field is there, the last token becomes the larger of the two. Later tokens follow it.
 *
 * KEYS[1] hold  KEYS[2] fence key of the hold's slot
 * ARGV[1] the owner's field: of an exclusive lock the owner, of a write lock '<owner>:write'  ARGV[2] token
 * Reply: integer  1 when the owner has the hold, else 0, and then nothing has changed
 *        error    FENCE when the fence key holds no usable number
 */
const COMMIT_TOKEN = `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
local stored = redis.call('get', KEYS[2])
if stored then
  local last = string.match(stored, '^%d+$') and #stored <= 16 and tonumber(stored)
  if not last then return redis.error_reply('FENCE ' .. KEYS[2] .. ' holds no usable fencing token') end
  if last >= tonumber(ARGV[2]) then return 1 end
end
redis.call('set', KEYS[2], ARGV[2])
return 1
`;

export const COMMIT: BatchPart = {
  letter: 'c',
  script: new Script(COMMIT_TOKEN, [{ word: 'FENCE', keyOnly: true }], 'release'),
  keys: 2,
  args: 2,
  shared: 0,
};
