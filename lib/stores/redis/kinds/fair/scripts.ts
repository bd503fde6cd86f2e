import { BASICS } from '../exclusive/line-functions.js';
import { IN_THE_WAY, LEAVE, NOT_READ_WRITE } from '../exclusive/scripts.js';

/*
 * The scripts of the fair lock. Hold, line and channels are Redisson's (RFairLock): a hash as the exclusive lock has it; a
 * list of the owners that wait, in order; a sorted set with the moment, in ms since 1970, at which each of them counts as
 * dead; and a channel for each owner, on which it is told when it is the first and the lock is free.
 *
 * The scores of the sorted set:
 * - Redisson sets the score of its entry once: the score of the last entry (without one: the end of the hold), plus the
 *   wait of its thread. When the thread acquires or gives up, its script subtracts that wait from all entries behind it.
 * - An entry of ours has a short time to live, and its process refreshes it. Nothing is added to the entries behind it, and
 *   nothing is subtracted when it leaves, so a leave does not depend on the number of waiters.
 * - Behind a Redisson entry the time to live counts from what its subtraction leaves. The score moves on with the time then,
 *   since those of Redisson do not.
 * - When all Redisson entries before ours have gone, the next script sets ours back to the short time to live.
 *
 * Scores are compared with the clock of the server. Every script clears dead entries from the front of the line. When that
 * makes another entry the first, the script notifies its owner: it looks at the hold in the way, whose end nobody may
 * announce.
 *
 * Every script checks all it depends on before its first write, and announces before it writes. An entry is removed
 * from the sorted set first: that needs no memory, and an entry of the list without a score counts as dead.
 */

/** How many dead entries one script clears, and how many entries it reads to find a position. */
export const MOST_LOOKED_AT = 64;
/** The time to live of our entries when the Redisson entries before them have gone, until they are refreshed, in ms. */
const REFRESHED_MS = 5_000;
/** An entry of ours has more than this left only behind a Redisson entry, in ms. */
const LONGEST_ALIVE_MS = 10_000;
/** How much later than the process counts it a refresh may reach the server, in ms. */
const LATE_MS = 2_000;
/** Redisson's default wait (`fairLockWaitTimeout`), in ms. A score does not tell how long the wait is. */
const REDISSON_WAIT_MS = 300_000;

/**
 * `look` finds the dead entries at the front of a line and the first living one, without an owner that is left out; `tidy`
 * removes those dead. `shorten` sets our entries back to the short time to live up to the first Redisson entry: it visits
 * them once after a Redisson thread has left, as Redisson's own script does. When the memory is full it does nothing.
 */
const FAIR_LINE = `
local now = time()[1] * 1000 + math.floor(time()[2] / 1000)
local function is_ours(owner) return string.find(owner, ':fair:', 1, true) ~= nil end
local function shorten(line)
  local from = 0
  repeat
    local owners = redis.call('lrange', line.queue, from, from + ${MOST_LOOKED_AT - 1})
    for _, owner in ipairs(owners) do
      if not is_ours(owner) then return end
      local till = redis.call('zscore', line.timeouts, owner)
      if till and tonumber(till) > now + ${LONGEST_ALIVE_MS} then
        redis.pcall('zadd', line.timeouts, 'xx', whole(now + ${REFRESHED_MS}), owner)
      end
    end
    from = from + #owners
  until #owners < ${MOST_LOOKED_AT}
end
local function look(line, left_out)
  line.dead, line.head, line.left = {}, nil, 0
  for i = 0, ${MOST_LOOKED_AT} do
    local owner = redis.call('lindex', line.queue, i)
    if not owner then return line end
    if owner == left_out then
      line.met = true
    else
      local till = redis.call('zscore', line.timeouts, owner)
      if till and tonumber(till) > now then
        line.head, line.left = owner, math.ceil(tonumber(till) - now)
        line.is_long = line.left > ${LONGEST_ALIVE_MS} and is_ours(owner)
        return line
      end
      line.dead[#line.dead + 1] = owner
    end
  end
  -- There are more of them: nobody is the first before they are gone.
  line.head, line.left, line.has_more = '', 1, true
  return line
end
local function tidy(line)
  for _, owner in ipairs(line.dead) do
    redis.call('zrem', line.timeouts, owner)
    redis.call('lrem', line.queue, 1, owner)
  end
  if line.is_long then shorten(line) end
end
local function leave_line(line, owner)
  redis.call('zrem', line.timeouts, owner)
  redis.call('lrem', line.queue, 1, owner)
end
-- Where an owner stands, and when to look again: one that is not the first acquires only after the first has gone, too.
-- \`position\`: where that is not known, it is looked for among the first entries.
local function standing(line, owner, left, position)
  if left == -1 then left = 1000 end
  if line.head == owner then return 0, math.max(0, left) end
  if line.has_more then return 1, 1 end
  if not position then
    for i, other in ipairs(redis.call('lrange', line.queue, 0, ${MOST_LOOKED_AT - 1})) do
      if other == owner then position = i - 1 end
    end
  end
  return math.max(1, position or ${MOST_LOOKED_AT}), math.max(0, left, line.left)
end
`;

/**
 * The score of an entry of ours that comes to the end of the line.
 *
 * Behind a Redisson entry it must outlive the subtraction of all waits before it. Their sum is in the last score, but counted
 * from when the first of their threads came. How long ago that was is not known: no longer than the wait of that
 * thread, less what its own score has left.
 */
const NEW_SCORE = `
local function new_score(line, alive)
  local last = redis.call('lindex', line.queue, -1)
  local till = last and tonumber(redis.call('zscore', line.timeouts, last) or 0)
  if not till or till <= now then return now + alive end
  if is_ours(last) then return till > now + ${LONGEST_ALIVE_MS} and till or now + alive end
  local left = 0
  for _, owner in ipairs(redis.call('lrange', line.queue, 0, ${MOST_LOOKED_AT - 1})) do
    if not is_ours(owner) then
      left = math.max(0, tonumber(redis.call('zscore', line.timeouts, owner) or 0) - now)
      break
    end
  end
  return till + math.max(0, ${REDISSON_WAIT_MS} - left) + alive
end
`;

/**
 * Takes the hold for an owner, puts it in line, or tells what is left of the hold in the way.
 *
 * Algorithm: the lock is the owner's when it is free and nobody alive is before it in line, or when it has it already (a
 * repeated request takes nothing twice). Tokens as with the exclusive lock. Else an owner that waits is put at the end,
 * unless it stands in line. Should the time to live be refused, the hold goes again. Where more dead entries are at the front
 * than one script clears, an owner that does not wait asks again.
 *
 * KEYS[1] hold  KEYS[2] list  KEYS[3] sorted set  KEYS[4] fence key of the hold's slot (only when ARGV[3] is not 0)
 * ARGV[1] owner  ARGV[2] lease in ms  ARGV[3] number of tokens to reserve, 0 for none, negative: of Redisson's counter
 * ARGV[4] 1 when it waits, else 0  ARGV[5] the time to live of its entry in ms; 0 when it does not wait
 * ARGV[6] channel of the exclusive lock  ARGV[7] PUBLISH or SPUBLISH
 * Reply: list  1, the first token as a string ('0' when none was asked for): granted
 *              0, what is left of the hold in the way in ms, -1 for one without an end: taken
 *              2, position, when to look again in ms: in line. 64 is also the position of an entry that has been there for
 *                 longer, and stands further back
 *              3: the lock is free, and more dead entries are in line
 *              0 and 2 with what has the hold as one more element, where that is another kind of lock: 'exclusive', 'read' or
 *              'write'; nothing tells a plain lock of Redisson from a fair one for which nobody waits
 *        error FENCE when the fence key holds no usable number
 */
export const FAIR_ACQUIRE = `${BASICS}${FAIR_LINE}${NEW_SCORE}
local hold, owner, lease, tokens, alive = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[5])
local waits, channel, publish = ARGV[4] == '1', ARGV[6], ARGV[7]
local left = redis.call('pttl', hold)
local mine = left ~= -2 and redis.call('hexists', hold, owner) == 1
-- What has the hold, if it is another kind of lock.
local function another_kind()
  if left == -2 or mine then return nil end
  ${IN_THE_WAY}
  local by = in_the_way(hold)
  if by == nil then return 'exclusive' end
  return (by == 'read' or by == 'write') and by or nil
end
-- Nor does it get one that Redisson's read-write lock has entered.
if mine and redis.call('hexists', hold, 'mode') == 1 then return { 0, left } end
local line = look({ queue = KEYS[2], timeouts = KEYS[3] })
local first = line.head == owner
if mine or (left == -2 and (first or not line.head)) then
  local token, series = 0, series_of(hold, KEYS[4], tokens)
  if tokens ~= 0 then
    token = first_token(series, tokens)
    if not token then return redis.error_reply(no_token(series)) end
  end
  if mine and left > lease then
    redis.call(publish, line.head and channel .. ':' .. line.head or channel, '0')
  end
  tidy(line)
  if first then leave_line(line, owner) end
  if tokens ~= 0 then redis.call('set', series, whole(token + math.abs(tokens) - 1)) end
  if not mine then redis.call('hset', hold, owner, 1) end
  local armed = redis.pcall('pexpire', hold, lease)
  if refused(armed) then
    if not mine then redis.call('del', hold) end
    return armed
  end
  return { 1, whole(token) }
end
if not waits then
  if left ~= -2 then return { 0, left, another_kind() } end
  tidy(line)
  return line.has_more and { 3 } or { 0, line.left }
end
if line.head and #line.dead > 0 and not first then redis.call(publish, channel .. ':' .. line.head, '0') end
local till = redis.call('zscore', line.timeouts, owner)
tidy(line)
local place
if not till or tonumber(till) <= now then
  -- Its own dead entry, or one whose score was lost with the sorted set.
  if till or redis.call('exists', line.timeouts) == 0 then redis.call('lrem', line.queue, 0, owner) end
  redis.call('zadd', line.timeouts, whole(new_score(line, alive)), owner)
  local pushed = redis.pcall('rpush', line.queue, owner)
  if refused(pushed) then
    redis.call('zrem', line.timeouts, owner)
    return pushed
  end
  place, line.head = pushed - 1, line.head or owner
end
local position, look_in = standing(line, owner, left, place)
return { 2, position, look_in, another_kind() }
`;

/**
 * Ends the owner's hold and wakes the first in line, or takes the owner out of the line.
 *
 * Algorithm: the first alive behind the owner is told on its own channel; where nobody stands in line, the end is announced
 * as that of an exclusive lock, whose waiters listen there. An owner that was the first of the line tells the
 * one behind it, too. A hold that has to stay for a while gets just that time to live instead.
 *
 * KEYS[1] hold  KEYS[2] list  KEYS[3] sorted set
 * ARGV[1] owner  ARGV[2] channel of the exclusive lock  ARGV[3] PUBLISH or SPUBLISH
 * ARGV[4] for how many more ms the hold stays; empty when it does not
 * Reply: integer  number of subscribers that were told, -1 when the owner did not hold it; also where another type of
 *                 value is, which stays
 *        string   'entered': a read-write lock was in it, too, and only the owner's part has ended
 */
export const FAIR_RELEASE = `${BASICS}${FAIR_LINE}
local hold, owner, channel, publish, stays_for = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local held = redis.pcall('hexists', hold, owner)
if refused(held) then
  if not string.find(held.err, 'WRONGTYPE', 1, true) then return held end
  held = -1
end
if held == 1 then
  ${LEAVE}
  if is_entered(hold) then
    leave(hold, owner)
    return 'entered'
  end
end
local line = look({ queue = KEYS[2], timeouts = KEYS[3] }, owner)
local stood = line.met or redis.call('zscore', line.timeouts, owner)
local told = -1
if held == 1 then
  told = redis.call(publish, line.head and channel .. ':' .. line.head or channel, '0')
elseif line.head and (line.met or #line.dead > 0) then
  redis.call(publish, channel .. ':' .. line.head, '0')
end
tidy(line)
if stood then leave_line(line, owner) end
if held == 1 then
  if stays_for ~= '' then redis.call('pexpire', hold, stays_for) else redis.call('del', hold) end
end
return told
`;

/**
 * Keeps places in line alive, and tells how they stand. Makes no place and takes no hold.
 *
 * Algorithm: for each place on its own, its score is its time to live from now on. A score that is later (behind a Redisson
 * entry) moves on by the time that has passed since it was kept before. A place that cannot be asked about does not stop the
 * others.
 *
 * KEYS[3i-2] hold  KEYS[3i-1] list  KEYS[3i] sorted set
 * ARGV[1] PUBLISH or SPUBLISH
 * ARGV[4i-2] owner  ARGV[4i-1] its time to live in ms  ARGV[4i] ms since it was kept
 * ARGV[4i+1] channel of the exclusive lock
 * Reply: list, for each place: list: position, when to look again in ms, as of an owner that asks for the lock; or integer: 1
 *        when the owner has the hold, 0 when it stands in line no more; or a string: the error
 */
export const FAIR_KEEP = `${BASICS}${FAIR_LINE}
local function keep(hold, line, owner, alive, passed, channel)
  local left = redis.call('pttl', hold)
  if left ~= -2 and redis.call('hexists', hold, owner) == 1 then return 1 end
  local till = redis.call('zscore', line.timeouts, owner)
  if not till then return 0 end
  till = tonumber(till) + passed
  if till <= now + alive + ${LATE_MS} then till = now + alive end
  redis.call('zadd', line.timeouts, 'xx', whole(till), owner)
  look(line)
  if line.head and #line.dead > 0 and line.head ~= owner then
    redis.call(ARGV[1], channel .. ':' .. line.head, '0')
  end
  tidy(line)
  return { standing(line, owner, left) }
end
local replies = {}
for i = 1, #KEYS / 3 do
  local line = { queue = KEYS[3 * i - 1], timeouts = KEYS[3 * i] }
  local owner, alive, passed, channel = unpack(ARGV, 4 * i - 2, 4 * i + 1)
  local ok, reply = pcall(keep, KEYS[3 * i - 2], line, owner, tonumber(alive), tonumber(passed), channel)
  replies[i] = ok and reply or text_of(reply)
end
return replies
`;

/** How many of those who wait are named. */
const MOST_NAMED = 100;

/**
 * Names those who wait, in order, without the dead.
 *
 * KEYS[1] list  KEYS[2] sorted set
 * Reply: list of owners
 */
export const FAIR_WAITING = `${BASICS}
local now = time()[1] * 1000 + math.floor(time()[2] / 1000)
local alive = {}
for _, owner in ipairs(redis.call('lrange', KEYS[1], 0, ${MOST_NAMED - 1})) do
  local till = redis.call('zscore', KEYS[2], owner)
  if till and tonumber(till) > now then alive[#alive + 1] = string.sub(owner, 1, 256) end
end
return alive
`;

/**
 * Ends whatever hold is there and wakes the first in line. Where nobody stands in line it does nothing: then nothing tells
 * the hold from an exclusive one, and the script of that ends it.
 *
 * KEYS[1] hold  KEYS[2] list  KEYS[3] sorted set
 * ARGV[1] channel of the exclusive lock  ARGV[2] PUBLISH or SPUBLISH
 * Reply: integer  1 when it ended a hold, else 0
 */
export const FAIR_FORCE_UNLOCK = `${BASICS}${FAIR_LINE}
if redis.call('exists', KEYS[1]) == 0 then return 0 end
-- Refuses another type of value before anything is told.
${NOT_READ_WRITE}
local line = look({ queue = KEYS[2], timeouts = KEYS[3] })
if not line.head then return 0 end
redis.call(ARGV[2], ARGV[1] .. ':' .. line.head, '0')
tidy(line)
return redis.call('del', KEYS[1])
`;
