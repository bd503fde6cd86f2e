import { WIRE_VERSION } from '../exclusive/queue-functions.js';
import { BLOCKER, FOREIGN_WORD } from '../exclusive/scripts.js';

/** Lua functions that the scripts of the read-write lock share; see `scripts.ts`. */

/** Functions and clock that all these scripts need. */
export const READ_WRITE_BASICS = `
if redis.replicate_commands then redis.replicate_commands() end
local clock = redis.call('time')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function whole(n) return string.format('%.0f', n) end
local function refused(reply) return type(reply) == 'table' and reply.err end
local function foreign(reply) return refused(reply) and string.find(reply.err, 'WRONGTYPE', 1, true) end
-- The owner's hold ('write', 'read' or nil), and its remaining ms.
local function held(hash, timeout, me)
  local mode = redis.call('hget', hash, 'mode')
  if mode == 'write' and redis.call('hexists', hash, me .. ':write') == 1 then
    return 'write', redis.call('pttl', hash)
  end
  if mode and redis.call('hexists', hash, me) == 1 then
    local left = redis.call('pttl', timeout)
    if left > 0 then return 'read', left end
  end
  return nil
end
-- A foreign hash without an end stays as it is.
local function raise(key, left, lease)
  if left ~= -1 and left < lease then return redis.pcall('pexpire', key, whole(lease)) end
  return 1
end
`;

/**
 * The wait queue, in the order of arrival. `read_queue` reads it, with the entries before an owner or before a new one. An
 * entry that has expired, or whose time comes from another clock, blocks no owner.
 */
export const READ_WRITE_QUEUE = `
local function read_queue(queue, me)
  local fields = redis.call('hgetall', queue)
  local found = { last = 0, all = {}, dead = {}, size = #fields / 2 }
  for i = 1, #fields, 2 do
    local ticket, till, span, kind = string.match(fields[i + 1], '^%d+ (%d+) (%d+) (%d+) (%a+)')
    if fields[i] == 'last' then
      found.last = tonumber(fields[i + 1])
    elseif ticket then
      local one = { owner = fields[i], ticket = tonumber(ticket), left = tonumber(till) - now, kind = kind }
      if one.owner == me then found.mine = one end
      if one.left <= 0 then
        -- The owner's own entry is written again: do not clear it away.
        if one.owner ~= me then found.dead[#found.dead + 1] = one.owner end
      elseif one.left <= tonumber(span) then found.all[#found.all + 1] = one end
    end
  end
  return found
end
-- Number of entries before the owner, and for how many ms the blocking ones among them may stay.
local function before(found, me, kind)
  local count, blocked = 0, 0
  for _, one in ipairs(found.all) do
    if one.owner ~= me and (not found.mine or one.ticket < found.mine.ticket) then
      count = count + 1
      if kind == 'write' or one.kind == 'write' then blocked = math.max(blocked, one.left) end
    end
  end
  return count, blocked
end
local function enqueue(queue, found, me, kind, span)
  local ticket = found.mine and found.mine.ticket or found.last + 1
  local text = table.concat({ '${WIRE_VERSION}', whole(ticket), whole(now + span), whole(span), kind }, ' ')
  -- First, because it needs no memory: for a queued owner, the writes after it are not refused for lack of memory.
  if found.mine then redis.call('pexpire', queue, whole(math.max(redis.call('pttl', queue), span))) end
  redis.call('hset', queue, 'last', whole(math.max(ticket, found.last)), me, text)
  local armed = redis.call('pttl', queue) < span and redis.pcall('pexpire', queue, whole(span))
  -- A queue with other entries already has a time to live.
  if refused(armed) and found.size == 0 then
    redis.call('del', queue)
  elseif refused(armed) and not found.mine then
    redis.call('hdel', queue, me)
  end
  if #found.dead > 0 then redis.pcall('hdel', queue, unpack(found.dead, 1, math.min(#found.dead, 1000))) end
  return armed
end
local function leave(queue, found, me)
  if not found.mine then return end
  if found.size <= 2 then redis.call('del', queue) else redis.call('hdel', queue, me) end
end
`;

/** Pause before a retry when another kind of lock has the name, in ms: its end is announced on another channel. */
const OTHER_KIND_RETRY_MS = 1_000;

/**
 * Functions for acquiring.
 *
 * - `must_wait` tells whether an owner may enter now: 0, or for how many ms it has to wait at most. It also tells the
 *   number of entries before it, the PTTL of the hash, and which other kind of lock has the name, if any. `foreign`: a
 *   string has it, and counts as a hold.
 * - `taken_reply` is the reply to an owner that does not wait, and `queued_reply` the reply to one that waits.
 * - `enter` lets the owner in. When a command is refused, it takes back what it has written.
 */
export const READ_WRITE_ENTER = `${BLOCKER}
local function other_kind(hash)
  local by = blocker(hash)
  return (by == 'fair' or by == 'own_fair') and 'fair' or 'exclusive'
end
local function taken_reply(wait, other) return other and 't ' .. whole(wait) .. ' ' .. other or wait end
local function queued_reply(count, wait, other)
  return 'q ' .. whole(count) .. ' ' .. whole(wait) .. (other and ' ' .. other or '')
end
local function must_wait(hash, kind, found, me, foreign)
  local left = redis.call('pttl', hash)
  local count, blocked = before(found, me, kind)
  if left == -2 then return math.max(0, blocked), count, left end
  if foreign then return left == -1 and -1 or math.max(1, left), count, left, '${FOREIGN_WORD}' end
  local mode = redis.call('hget', hash, 'mode')
  if not mode then
    local soon = left == -1 and ${OTHER_KIND_RETRY_MS} or math.min(math.max(1, left), ${OTHER_KIND_RETRY_MS})
    return soon, count, left, other_kind(hash)
  end
  if mode == 'read' and kind == 'read' then return blocked, count, left end
  return left == -1 and -1 or math.max(1, left), count, left
end
local function enter(hash, timeout, index, kind, me, lease, left)
  local field = kind == 'write' and me .. ':write' or me
  local outdated = is_outdated(hash, index)
  if kind == 'read' then redis.call('set', timeout, '1', 'px', lease) end
  if outdated then redis.call('del', index) end
  local done = kind == 'read' and note(index, me, tonumber(lease))
  if not refused(done) then done = redis.pcall('hset', hash, 'mode', kind, field, 1) end
  if not refused(done) then done = raise(hash, left, tonumber(lease)) end
  if refused(done) then
    if kind == 'read' then
      redis.call('del', timeout)
      redis.pcall('zrem', index, me)
    end
    if left == -2 then redis.call('del', hash) else redis.call('hdel', hash, field) end
    return done
  end
  return nil
end
`;
