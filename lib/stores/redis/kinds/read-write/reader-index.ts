import { OWN_PROCESS } from '../exclusive/scripts.js';

/** Maximum number of holds of one reader that a script visits: a foreign count may be anything. */
const MAX_COUNTED = 1_000;
/** Number of the shortest entries that a release checks for expired readers. */
const MAX_EXPIRED = 10;
/** Maximum number of members in one command: Lua's stack has a limit. */
const CHUNK = 1_000;

/**
 * The index of this library's readers: a sorted set beside the hash. A member is a reader's field, its score the end of
 * its lease in ms of the server's clock. It lives as long as the hash, so a script finds the longest remaining reader
 * without a visit to the others.
 *
 * The index is never needed: `others_left` visits all readers when the hash has a field that the index lacks, and then
 * rebuilds the index. The fields of Redisson's readers are never in it, because Redisson's scripts do not write it.
 *
 * Every member is a field of the hash, unless the hash was deleted from outside. Then none is, because the fields of
 * the next hash are Redisson's. So one member tells whether the index belongs to this hash. Each script that adds a
 * reader checks that first (`is_outdated`). The other scripts change nothing without a reader of this library in the
 * hash.
 *
 * Only `others_left` touches keys that are not among KEYS, and only when it visits all readers: Redisson's layout has a
 * key for each hold, whose names no caller knows.
 */
export const READER_INDEX = `
local function timeout_of(prefix, owner, n) return prefix .. ':' .. owner .. ':rwlock_timeout:' .. whole(n) end
-- Remaining time of a reader's longest hold, in ms; 0 when none remains.
local function left_of(prefix, owner, count)
  local latest = 0
  for n = count, math.max(1, count - ${MAX_COUNTED - 1}), -1 do
    latest = math.max(latest, redis.call('pttl', timeout_of(prefix, owner, n)))
  end
  return latest
end
local function counted(text) return #text <= 15 and string.match(text, '^%d+$') and tonumber(text) end
local function is_ours(owner) return string.match(owner, '^${OWN_PROCESS}:%d+$') ~= nil end
-- Applies a command to a key and any number of members.
local function in_chunks(command, key, members)
  for i = 1, #members, ${CHUNK} do
    local done = redis.pcall(command, key, unpack(members, i, math.min(i + ${CHUNK - 1}, #members)))
    if refused(done) then return done end
  end
  return 1
end
local function is_outdated(hash, index)
  local longest = redis.call('zrange', index, -1, -1)[1]
  return longest ~= nil and not redis.call('hget', hash, longest)
end
-- Whether every reader of the hash is in the index.
local function covers(hash, index)
  local size = redis.call('zcard', index)
  return size > 0 and redis.call('hlen', hash) == size + 1
end
-- An index that lives too short, or lacks a reader's new end, would shorten the hash: delete it. It is rebuilt later.
local function note_all(index, scores, longest)
  local done = in_chunks('zadd', index, scores)
  if not refused(done) and redis.call('pttl', index) < longest then done = redis.pcall('pexpire', index, whole(longest)) end
  if refused(done) and not foreign(done) then redis.pcall('del', index) end
  return done
end
local function note(index, me, left) return note_all(index, { whole(now + left), me }, left) end
-- Visits all readers: remaining ms of all holds except those of one reader. Rebuilds the index if it lacks a reader of
-- ours.
local function visit_all(hash, index, prefix, me)
  local fields, latest = redis.call('hgetall', hash), 0
  local scores, longest, expired = {}, 0, {}
  for i = 1, #fields, 2 do
    local owner, count = fields[i], counted(fields[i + 1])
    if owner ~= 'mode' and string.sub(owner, -6) ~= ':write' and count then
      local left = left_of(prefix, owner, count)
      if owner ~= me then latest = math.max(latest, left) end
      if is_ours(owner) and left <= 0 then
        expired[#expired + 1] = owner
      elseif is_ours(owner) then
        scores[#scores + 1] = whole(now + left)
        scores[#scores + 1] = owner
        longest = math.max(longest, left)
      end
    end
  end
  if redis.call('zcard', index) ~= #scores / 2 then
    in_chunks('hdel', hash, expired)
    redis.call('del', index)
    if #scores > 0 then note_all(index, scores, longest) end
  end
  return latest
end
-- Remaining ms of the holds of all readers but one; 0 when none remains. Removes some other readers that have expired.
local function others_left(hash, index, prefix, me)
  local shortest, expired = redis.call('zrange', index, 0, ${MAX_EXPIRED - 1}, 'withscores'), {}
  for i = 1, #shortest, 2 do
    if shortest[i] ~= me and tonumber(shortest[i + 1]) <= now then expired[#expired + 1] = shortest[i] end
  end
  if #expired > 0 then
    redis.call('zrem', index, unpack(expired))
    redis.call('hdel', hash, unpack(expired))
  end
  if not covers(hash, index) then return visit_all(hash, index, prefix, me) end
  local longest = redis.call('zrange', index, -2, -1, 'withscores')
  for i = #longest - 1, 1, -2 do
    if longest[i] ~= me then return math.max(0, tonumber(longest[i + 1]) - now) end
  end
  return 0
end
`;
