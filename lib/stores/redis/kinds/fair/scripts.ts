import { BASICS } from '../exclusive/queue-functions.js';
import { BLOCKER, FOREIGN_WORD, isForeign, LEAVE, NOT_READ_WRITE } from '../exclusive/scripts.js';

/*
 * The scripts of the fair lock. Hold, wait queue and channels are Redisson's (RFairLock):
 * - a hash, as of the exclusive lock;
 * - a list of the waiting owners, in order;
 * - a sorted set with the time at which each owner counts as dead, in ms since 1970;
 * - a channel for each owner, which notifies it when it is the first and the lock is free.
 *
 * The scores of the sorted set:
 * - Redisson sets the score of its entry once: the score of the last entry (without one: the end of the hold), plus the
 *   wait of its thread. When the thread acquires or gives up, its script subtracts that wait from all entries behind it.
 * - An entry of ours has a short time to live, and its process refreshes it. Nothing is added to the entries behind it, and
 *   nothing is subtracted when it leaves, so a leave does not depend on the number of waiters.
 * - Behind a Redisson entry the time to live counts from what remains after its subtractions. There the score moves on
 *   with the time, because the scores of Redisson's entries do not.
 * - When all Redisson entries before ours have gone, the next script sets ours back to the short time to live.
 *
 * Scores are compared with the clock of the server. Every script clears dead entries from the front of the queue. When
 * that makes another entry the first, the script notifies its owner. The owner then looks at the blocking hold, whose
 * end may not be announced.
 *
 * Every script checks everything that it depends on before its first write, and announces before it writes. An entry is
 * removed from the sorted set first: that needs no memory, and an entry of the list without a score counts as dead.
 */

/** Maximum number of dead entries that one script clears, and of entries that it reads to find a position. */
export const MAX_LOOKED_AT = 64;
/** Time to live of our entries after the Redisson entries before them have gone, until a refresh, in ms. */
const REFRESHED_MS = 5_000;
/** Only behind a Redisson entry, an entry of ours has more time left than this, in ms. */
const LONGEST_ALIVE_MS = 10_000;
/** Maximum delay of a refresh on its way to the server, in ms. */
const LATE_MS = 2_000;
/** Redisson's default wait (`fairLockWaitTimeout`), in ms. A score does not tell how long the wait is. */
const REDISSON_WAIT_MS = 300_000;

/**
 * `read_queue` finds the dead entries at the front of a queue and the first living one, without an owner that is left out.
 * `tidy` removes these dead entries. `shorten` sets our entries back to the short time to live, up to the first
 * Redisson entry. It visits them once after a Redisson thread has left, as Redisson's own script does. When the memory
 * is full it does nothing.
 */
const FAIR_QUEUE = `
local now = time()[1] * 1000 + math.floor(time()[2] / 1000)
local function is_ours(owner) return string.find(owner, ':fair:', 1, true) ~= nil end
local function shorten(queue)
  local from = 0
  repeat
    local owners = redis.call('lrange', queue.list, from, from + ${MAX_LOOKED_AT - 1})
    for _, owner in ipairs(owners) do
      if not is_ours(owner) then return end
      local till = redis.call('zscore', queue.timeouts, owner)
      if till and tonumber(till) > now + ${LONGEST_ALIVE_MS} then
        redis.pcall('zadd', queue.timeouts, 'xx', whole(now + ${REFRESHED_MS}), owner)
      end
    end
    from = from + #owners
  until #owners < ${MAX_LOOKED_AT}
end
local function read_queue(queue, left_out)
  queue.dead, queue.head, queue.left = {}, nil, 0
  for i = 0, ${MAX_LOOKED_AT} do
    local owner = redis.call('lindex', queue.list, i)
    if not owner then return queue end
    if owner == left_out then
      queue.met = true
    else
      local till = redis.call('zscore', queue.timeouts, owner)
      if till and tonumber(till) > now then
        queue.head, queue.left = owner, math.ceil(tonumber(till) - now)
        queue.is_long = queue.left > ${LONGEST_ALIVE_MS} and is_ours(owner)
        return queue
      end
      queue.dead[#queue.dead + 1] = owner
    end
  end
  -- There are more dead entries: no owner is the first before they are gone.
  queue.head, queue.left, queue.has_more = '', 1, true
  return queue
end
local function tidy(queue)
  for _, owner in ipairs(queue.dead) do
    redis.call('zrem', queue.timeouts, owner)
    redis.call('lrem', queue.list, 1, owner)
  end
  if queue.is_long then shorten(queue) end
end
local function leave_queue(queue, owner)
  redis.call('zrem', queue.timeouts, owner)
  redis.call('lrem', queue.list, 1, owner)
end
-- Position of an owner, and when to retry. An owner that is not the first acquires only after the first has gone, too.
-- Without \`position\` it is searched for among the first entries.
local function position_of(queue, owner, left, position)
  if left == -1 then left = 1000 end
  if queue.head == owner then return 0, math.max(0, left) end
  if queue.has_more then return 1, 1 end
  if not position then
    for i, other in ipairs(redis.call('lrange', queue.list, 0, ${MAX_LOOKED_AT - 1})) do
      if other == owner then position = i - 1 end
    end
  end
  return math.max(1, position or ${MAX_LOOKED_AT}), math.max(0, left, queue.left)
end
`;

/**
 * The score of a new entry of ours, at the end of the queue.
 *
 * Behind a Redisson entry it must outlive the subtraction of all waits before it. The last score contains their sum,
 * but counted from the arrival of the first of these threads. The time since then is unknown. It is at most the wait of
 * that thread, less what its own score has left.
 */
const NEW_SCORE = `
local function new_score(queue, alive)
  local last = redis.call('lindex', queue.list, -1)
  local till = last and tonumber(redis.call('zscore', queue.timeouts, last) or 0)
  if not till or till <= now then return now + alive end
  if is_ours(last) then return till > now + ${LONGEST_ALIVE_MS} and till or now + alive end
  local left = 0
  for _, owner in ipairs(redis.call('lrange', queue.list, 0, ${MAX_LOOKED_AT - 1})) do
    if not is_ours(owner) then
      left = math.max(0, tonumber(redis.call('zscore', queue.timeouts, owner) or 0) - now)
      break
    end
  end
  return till + math.max(0, ${REDISSON_WAIT_MS} - left) + alive
end
`;

/**
 * Acquires the hold for an owner, enqueues the owner, or replies with the remaining time of the blocking hold.
 *
 * Algorithm: the owner gets the lock when it is free and no living owner is queued before it. It also gets the lock
 * when it has it already: a repeated request acquires nothing twice. Tokens are as with the exclusive lock. Otherwise a
 * waiting owner is appended to the queue, unless it is there already. If Redis refuses the time to live, the hold is
 * removed again. With more dead entries at the front than one script clears, an owner that does not wait repeats the
 * request.
 *
 * KEYS[1] hold  KEYS[2] list  KEYS[3] sorted set  KEYS[4] fence key of the hold's slot (only when ARGV[3] is not 0)
 * ARGV[1] owner  ARGV[2] lease in ms  ARGV[3] number of tokens to reserve, 0 for none, negative: of Redisson's counter
 * ARGV[4] 1 when it waits, else 0  ARGV[5] the time to live of its entry in ms; 0 when it does not wait
 * ARGV[6] channel of the exclusive lock  ARGV[7] PUBLISH or SPUBLISH  ARGV[8] when a string counts as a hold
 * Reply: list  1, the first token as a string ('0' when none was asked for): granted
 *              0, remaining ms of the blocking hold, -1 for a hold without an end: taken
 *              2, position, ms until a retry (of a string: its remaining ms, or -1): queued. 64 is also the position of an old entry further back
 *              3: the lock is free, and more dead entries are in the queue
 *              0 and 2 have one more element when another kind of lock has the hold: 'exclusive', 'read' or 'write';
 *              'foreign' for a string. A plain lock of Redisson looks like a fair one without waiters
 *        error FENCE when the fence key holds no usable number
 */
export const FAIR_ACQUIRE = `${BASICS}${FAIR_QUEUE}${NEW_SCORE}
local hold, owner, lease, tokens, alive = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[5])
local waits, channel, publish = ARGV[4] == '1', ARGV[6], ARGV[7]
local left = redis.call('pttl', hold)
local foreign = left ~= -2 and ${isForeign('ARGV[8]', 'hold')}
local mine = left ~= -2 and not foreign and redis.call('hexists', hold, owner) == 1
-- The kind of lock that has the hold, if it is another one.
local function another_kind()
  if left == -2 or mine then return nil end
  if foreign then return '${FOREIGN_WORD}' end
  ${BLOCKER}
  local by = blocker(hold)
  if by == nil then return 'exclusive' end
  return (by == 'read' or by == 'write') and by or nil
end
-- A hold that Redisson's read-write lock has entered is not reacquired either.
if mine and redis.call('hexists', hold, 'mode') == 1 then return { 0, left } end
local queue = read_queue({ list = KEYS[2], timeouts = KEYS[3] })
local first = queue.head == owner
if mine or (left == -2 and (first or not queue.head)) then
  local token, series = 0, series_of(hold, KEYS[4], tokens)
  if tokens ~= 0 then
    token = first_token(series, tokens)
    if not token then return redis.error_reply(no_token(series)) end
  end
  if mine and left > lease then
    redis.call(publish, queue.head and channel .. ':' .. queue.head or channel, '0')
  end
  tidy(queue)
  if first then leave_queue(queue, owner) end
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
  tidy(queue)
  return queue.has_more and { 3 } or { 0, queue.left }
end
if queue.head and #queue.dead > 0 and not first then redis.call(publish, channel .. ':' .. queue.head, '0') end
local till = redis.call('zscore', queue.timeouts, owner)
tidy(queue)
local pushed_at
if not till or tonumber(till) <= now then
  -- Its own dead entry, or an entry whose score was lost with the sorted set.
  if till or redis.call('exists', queue.timeouts) == 0 then redis.call('lrem', queue.list, 0, owner) end
  redis.call('zadd', queue.timeouts, whole(new_score(queue, alive)), owner)
  local pushed = redis.pcall('rpush', queue.list, owner)
  if refused(pushed) then
    redis.call('zrem', queue.timeouts, owner)
    return pushed
  end
  pushed_at, queue.head = pushed - 1, queue.head or owner
end
local position, look_in = position_of(queue, owner, left, pushed_at)
return { 2, position, foreign and left or look_in, another_kind() }
`;

/**
 * Ends the owner's hold and notifies the first owner in the queue, or takes the owner out of the queue.
 *
 * Algorithm: the first living owner behind this one is notified on its own channel. With an empty queue, the end is
 * announced as of an exclusive lock, whose waiters listen there. An owner that leaves the front of the queue also
 * notifies the next one. A hold that stays for a while gets just that time to live instead.
 *
 * KEYS[1] hold  KEYS[2] list  KEYS[3] sorted set
 * ARGV[1] owner  ARGV[2] channel of the exclusive lock  ARGV[3] PUBLISH or SPUBLISH
 * ARGV[4] for how many more ms the hold stays; empty when it ends now
 * Reply: integer  number of notified subscribers, -1 when the owner did not hold it; also -1 for another type of value,
 *                 which stays
 *        string   'entered': a read-write lock was in it, too, and only the owner's part has ended
 */
export const FAIR_RELEASE = `${BASICS}${FAIR_QUEUE}
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
local queue = read_queue({ list = KEYS[2], timeouts = KEYS[3] }, owner)
local was_queued = queue.met or redis.call('zscore', queue.timeouts, owner)
local receivers = -1
if held == 1 then
  receivers = redis.call(publish, queue.head and channel .. ':' .. queue.head or channel, '0')
elseif queue.head and (queue.met or #queue.dead > 0) then
  redis.call(publish, channel .. ':' .. queue.head, '0')
end
tidy(queue)
if was_queued then leave_queue(queue, owner) end
if held == 1 then
  if stays_for ~= '' then redis.call('pexpire', hold, stays_for) else redis.call('del', hold) end
end
return receivers
`;

/**
 * Refreshes queue entries and replies with their positions. Makes no entry and acquires no hold.
 *
 * Algorithm: each entry's score becomes its time to live from now on. A score that is later (behind a Redisson entry)
 * moves on by the time since the last refresh. An entry that fails does not affect the others.
 *
 * KEYS[3i-2] hold  KEYS[3i-1] list  KEYS[3i] sorted set
 * ARGV[1] PUBLISH or SPUBLISH
 * ARGV[4i-2] owner  ARGV[4i-1] its time to live in ms  ARGV[4i] ms since its last refresh
 * ARGV[4i+1] channel of the exclusive lock
 * ARGV[last] when a string counts as a hold
 * Reply: list, for each entry: list: position, ms until a retry, as in the reply to an acquire, and 'foreign' for a
 *        string; or integer: 1 when the
 *        owner has the hold, 0 when it is not queued any more; or a string: the error
 */
export const FAIR_KEEP = `${BASICS}${FAIR_QUEUE}
local strings = ARGV[4 * #KEYS / 3 + 2]
local function keep(hold, queue, owner, alive, passed, channel)
  local left = redis.call('pttl', hold)
  local foreign = left ~= -2 and ${isForeign('strings', 'hold')}
  if left ~= -2 and not foreign and redis.call('hexists', hold, owner) == 1 then return 1 end
  local till = redis.call('zscore', queue.timeouts, owner)
  if not till then return 0 end
  till = tonumber(till) + passed
  if till <= now + alive + ${LATE_MS} then till = now + alive end
  redis.call('zadd', queue.timeouts, 'xx', whole(till), owner)
  read_queue(queue)
  if queue.head and #queue.dead > 0 and queue.head ~= owner then
    redis.call(ARGV[1], channel .. ':' .. queue.head, '0')
  end
  tidy(queue)
  local position, look_in = position_of(queue, owner, left)
  if foreign then return { position, left, '${FOREIGN_WORD}' } end
  return { position, look_in }
end
local replies = {}
for i = 1, #KEYS / 3 do
  local queue = { list = KEYS[3 * i - 1], timeouts = KEYS[3 * i] }
  local owner, alive, passed, channel = unpack(ARGV, 4 * i - 2, 4 * i + 1)
  local ok, reply = pcall(keep, KEYS[3 * i - 2], queue, owner, tonumber(alive), tonumber(passed), channel)
  replies[i] = ok and reply or text_of(reply)
end
return replies
`;

/** Maximum number of waiters that are listed. */
const MAX_NAMED = 100;

/**
 * Lists the waiting owners, in order, without the dead.
 *
 * KEYS[1] list  KEYS[2] sorted set
 * Reply: list of owners
 */
export const FAIR_WAITING = `${BASICS}
local now = time()[1] * 1000 + math.floor(time()[2] / 1000)
local alive = {}
for _, owner in ipairs(redis.call('lrange', KEYS[1], 0, ${MAX_NAMED - 1})) do
  local till = redis.call('zscore', KEYS[2], owner)
  if till and tonumber(till) > now then alive[#alive + 1] = string.sub(owner, 1, 256) end
end
return alive
`;

/**
 * Ends whatever hold is there and notifies the first owner in the queue. With an empty queue it does nothing: the hold
 * then looks like an exclusive one, and the script of exclusive locks ends it.
 *
 * KEYS[1] hold  KEYS[2] list  KEYS[3] sorted set
 * ARGV[1] channel of the exclusive lock  ARGV[2] PUBLISH or SPUBLISH
 * Reply: integer  1 when it ended a hold, else 0
 */
export const FAIR_FORCE_UNLOCK = `${BASICS}${FAIR_QUEUE}
if redis.call('exists', KEYS[1]) == 0 then return 0 end
-- Rejects another type of value before any notification.
${NOT_READ_WRITE}
local queue = read_queue({ list = KEYS[2], timeouts = KEYS[3] })
if not queue.head then return 0 end
redis.call(ARGV[2], ARGV[1] .. ':' .. queue.head, '0')
tidy(queue)
return redis.call('del', KEYS[1])
`;
