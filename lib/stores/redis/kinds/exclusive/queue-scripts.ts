import { TIME } from '../../connection/script-batch.js';
import {
  BASICS,
  CHANNEL,
  HEADER,
  WAIT_QUEUE,
  LISTENERS_YIELD_MS,
  MAX_YIELD_MS,
  MAX_DEFICIT_MS,
  POLLERS_EVERY_MS,
  POLLERS_YIELD_MS,
  REMEMBERED_MS,
  RULES,
} from './queue-functions.js';
import { FOREIGN_WORD, isForeign, LEAVE, NOT_READ_WRITE, TAKE, TAKEN } from './scripts.js';

/**
 * The scripts of the exclusive lock with a wait queue in Redis. The end of a hold grants it to the first living entry.
 * The hold itself is as in `scripts.ts`.
 *
 * The wait queue of a lock is a hash beside its hold. It exists only while there are waiters, and for a moment
 * afterwards, and never without a time to live:
 *
 *   last         the last ticket that was given
 *   head         the first ticket that may still be there
 *   polled       when the lock was last left to clients that only poll, in ms
 *   yield        until when it is left to clients without an entry, in ms; 0 when a queued one has had it since
 *   since        since when the queue has it, in ms; in the future: the others have had it for so much longer
 *   <ticket>     an entry: '<version> <alive until> <alive for> <provisional lease> <tokens> <not subscribed> <owner>'; the
 *                tokens are a negative number if they are those of Redisson's counter
 *   @<owner>     the owner's ticket
 *
 * Entries of all versions begin with these words, and are granted in their order. Later versions may add words.
 * Times are ms of the server's clock. An entry is alive until its time. If that is farther away than the entry's time
 * to live, it comes from another clock. Such an entry is skipped once, and gets a time of this clock. An entry that is
 * not subscribed is granted without a message. An owner is enqueued once, and never again.
 *
 * A grant by message is sent on the channel of the owner's process: 'grant <version> <owner> <first token> <tokens>
 * <provisional lease> <entries left>', a line feed, and the name of the hold.
 *
 * Clients without an entry are Java's, and clients that only poll. Java's clients listen to the announcement of a
 * release. If there are more listeners than entries, a release opens a yield window: the lock is free, and no entry is
 * granted. The window lasts as long as the queue had the lock before, so both have it for about the same time. It ends
 * when no other client listens any more. Pollers cannot be counted: once a second there is a window for them.
 */

/**
 * Acquires the hold for an owner, enqueues the owner, or replies with the remaining time of the blocking hold.
 *
 * Algorithm: as `EXCLUSIVE_ACQUIRE`, but no owner overtakes. While owners are queued, a free hold goes to the first of
 * them, which may be the owner itself. An owner that does not wait gets the reply that the key is taken.
 *
 * KEYS[1] hold  KEYS[2] fence key of the slot  KEYS[3] wait queue
 * ARGV[1] owner  ARGV[2] lease in ms  ARGV[3] number of tokens, 0 for none, negative: of Redisson's counter
 * ARGV[4] '' when it does not wait, else '<time to live of its entry in ms> <provisional lease of a grant by message
 *         in ms> <number of tokens of that> <1 when its process is not subscribed yet, else 0>': few arguments, because
 *         most locks are free
 * ARGV[5] PUBLISH or SPUBLISH (only when reacquiring: to notify waiters that the hold ends sooner now)
 * ARGV[6] when a string counts as a hold
 * Reply: integer  remaining ms of the other hold, -1 for a hold without an end
 *        string   granted: the first token, '0' when none was asked for
 *                 '<first token> <tokens> <entries behind it>': the same when there is a wait queue
 *                 'q <ticket> <entries before it> <remaining ms of the hold>': queued; then the kind of lock that has
 *                 the hold, if it is none of this library: see `BLOCKER`. Of a string it is 'foreign'
 *                 't <remaining ms of the hold> <kind of lock>': the same for an owner that does not wait
 *        error    FENCE when the fence key holds no usable number
 */
export const QUEUE_ACQUIRE = `${TIME}
local hold, fence, queue, me = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
-- Most locks are free: acquire them before preparing what only a queue needs.
if redis.call('exists', hold, queue) == 0 then
local left = -2
${TAKE}end
local left = redis.call('pttl', hold)
local foreign = left ~= -2 and ${isForeign('ARGV[6]', 'hold')}
local mine = left ~= -2 and not foreign and redis.call('hexists', hold, me) == 1
local waits = ARGV[4] ~= ''
if foreign and not waits then return 't ' .. string.format('%.0f', left) .. ' ${FOREIGN_WORD}' end
-- Nor does it get one that Redisson's read-write lock has entered.
local entered = mine and redis.call('hlen', hold) > 1 and redis.call('hexists', hold, 'mode') == 1
if entered or (not mine and left ~= -2 and not waits) then
  ${TAKEN}
  return taken(hold, left)
end
${RULES}${WAIT_QUEUE}
local function take()
  local tokens = tonumber(ARGV[3])
  local token, series = 0, series_of(hold, fence, tokens)
  if tokens ~= 0 then
    token = first_token(series, tokens)
    if not token then return redis.error_reply(no_token(series)) end
  end
  if mine and ARGV[5] and left > tonumber(ARGV[2]) then
    redis.call(ARGV[5], ${CHANNEL}, '0')
  end
  -- PEXPIRE needs no memory. After it Redis does not refuse the SET below at maxmemory.
  if mine then redis.call('pexpire', hold, ARGV[2]) end
  if tokens ~= 0 then redis.call('set', series, whole(token + math.abs(tokens) - 1)) end
  if mine then return whole(token) end
  redis.call('hset', hold, me, 1)
  local armed = redis.pcall('pexpire', hold, ARGV[2])
  if refused(armed) then
    redis.call('del', hold)
    return armed
  end
  return whole(token)
end
if mine then
  local token = take()
  if type(token) ~= 'string' or redis.call('exists', queue) == 0 then return token end
  local entries = read_queue(queue).count
  return token .. ' ' .. whole(math.abs(ARGV[3])) .. ' ' .. whole(entries)
end
local found = read_queue(queue)
local has_queue = found.size > 0
if has_queue then tidy(queue, found) end
local window = waits and window_left(found, hold) or found.over and 0 or found.window
if left == -2 and found.over and window == 0 then
  local token = take()
  if found.till ~= 0 and type(token) == 'string' then
    close_window(queue, found)
    redis.pcall('pexpire', queue, ${REMEMBERED_MS})
  end
  return token
end
local own = nil
if waits then
  local alive, first, tokens, not_subscribed = string.match(ARGV[4], '^(%d+) (%d+) (%-?%d+) (%d)$')
  local is_new = not has_queue or (found.over and found.till == 0)
  local ticket = is_new and 1 or found.last + 1
  local name = whole(ticket)
  local text = entry_text(now + alive, alive, first, tokens, not_subscribed, me)
  local written
  if is_new then
    written = redis.pcall('hset', queue, 'last', name, 'head', 1, 'polled', whole(now), 'yield', 0, 'since', whole(now),
      name, text, '@' .. me, name)
  else
    written = redis.pcall('hset', queue, 'last', name, name, text, '@' .. me, name)
  end
  if refused(written) then return written end
  if redis.call('pttl', queue) < tonumber(alive) then
    local armed = redis.pcall('pexpire', queue, alive)
    if refused(armed) then
      redis.call('del', queue)
      return armed
    end
  end
  own = { ticket = ticket, text = text, lease = first, tokens = tonumber(tokens), not_subscribed = not_subscribed == '1', owner = me }
  found.count = found.count + 1
end
local by
if foreign then by = '${FOREIGN_WORD}'
elseif left ~= -2 then left, by = look_again_in(found, left), blocker(hold)
elseif window > 0 then left = window
else
  local done, granted = pcall(grant, hold, fence, queue, found, own)
  if not done then
    -- This user may not remove it: write it as dead, so that the next script that reads it removes it.
    if own and refused(redis.pcall('hdel', queue, whole(own.ticket), '@' .. me)) then
      redis.call('hset', queue, whole(own.ticket), entry_text(0, 0, 0, 0, 0, me))
    end
    return redis.error_reply(text_of(granted))
  end
  if granted and granted.owner == me then
    redis.call('pexpire', hold, ARGV[2])
    return whole(granted.token) .. ' ' .. whole(granted.count) .. ' ' .. whole(granted.left)
  end
  left = granted and tonumber(granted.lease) or 0
end
if not waits then return left end
return 'q ' .. whole(own.ticket) .. ' ' .. whole(found.count - 1) .. ' ' .. blocked_for(left, by)
`;

/**
 * Ends the owner's hold and grants it to the first living owner in the queue, or takes the owner out of the queue.
 *
 * Algorithm: everything that can be refused is checked before the hold is deleted. When a part of that is uncertain,
 * the hold is announced as free and deleted, as `EXCLUSIVE_RELEASE` does. So it is when a yield window opens. The
 * queued waiters then receive the announcement, and the first of them ask when the window is over. Works when the
 * memory is full.
 *
 * When Redisson's read-write lock has entered the hold, only the owner's part ends. With an empty queue, a hold of one
 * field is not checked twice: if it is another owner's, nothing is removed, and the only effect is a needless
 * announcement.
 *
 * KEYS[1] hold  KEYS[2] fence key of the slot  KEYS[3] wait queue
 * ARGV[1] owner  ARGV[2] PUBLISH or SPUBLISH, for the announcement  ARGV[3] 1 when its process receives that, else 0
 * ARGV[4] for how many more ms the hold stays (only when it stays)
 * Reply: integer  0 when it was held, 1 when it was queued, -1 when neither
 *        string   'entered': it was held, and a read-write lock was in it, too
 */
export const QUEUE_RELEASE = `
local hold, fence, queue, me = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local has_queue = redis.pcall('exists', queue) == 1
local stays, own_receiver = ARGV[4], tonumber(ARGV[3])
local held = redis.pcall('hlen', hold)
local is_more = type(held) == 'number' and held > 1
if held ~= 0 and (has_queue or stays or held ~= 1) then
  held = redis.pcall('hexists', hold, me)
  if held == 1 and is_more then
    ${LEAVE}
    if is_entered(hold) then
      leave(hold, me)
      return 'entered'
    end
  end
end
local function plain()
  local receivers = redis.call(ARGV[2], ${CHANNEL}, '0')
  if held ~= 1 then return 1 end
  if stays then redis.call('pexpire', hold, stays)
  elseif is_more then redis.call('del', hold)
  elseif redis.call('hdel', hold, me) == 0 and not has_queue then return -1, 0 end
  return 0, receivers
end
local reply, receivers
if held == 1 and not has_queue then
  reply, receivers = plain()
  if receivers == 0 or receivers == own_receiver or stays then return reply end
end
${BASICS}
local is_foreign = refused(held) and string.find(held.err, 'WRONGTYPE', 1, true)
if refused(held) and not is_foreign then return held end
if not has_queue and held ~= 1 then return -1 end
local timed = pcall(time)
if not has_queue then
  if not timed then return reply end
  ${WAIT_QUEUE}
  if more_listen(hold, own_receiver) then pcall(open_window, queue, ${LISTENERS_YIELD_MS}) end
  return reply
end
local ticket = redis.pcall('hget', queue, '@' .. me)
local was_queued = type(ticket) == 'string'
if held ~= 1 and not was_queued then return -1 end
if was_queued then redis.call('hdel', queue, ticket, '@' .. me) end
if not timed or (held == 1 and stays) then return plain() end
if held ~= 1 and (is_foreign or redis.call('exists', hold) == 1) then
  if redis.call('hlen', queue) <= ${HEADER} then redis.call('del', queue) end
  return 1
end
${WAIT_QUEUE}
local fine, found = pcall(read_queue, queue)
if not fine then return plain() end
-- The lock is free, in a yield window: waiters retry when it is over.
if held ~= 1 and found.window > 0 then return 1 end
local window = 0
local listened = more_listen(hold, found.count + own_receiver)
if listened then
  local had_for = now - found.since
  -- More than that comes from another clock.
  if had_for > 0 or had_for < -${MAX_DEFICIT_MS} then
    window = math.max(${LISTENERS_YIELD_MS}, math.min(had_for, ${MAX_YIELD_MS}))
  end
end
local polled = now - found.polled >= ${POLLERS_EVERY_MS} or now < found.polled
if polled then window = ${POLLERS_YIELD_MS} end
if #found.entries > 0 and window == 0 then
  -- DEL needs no memory. After it Redis does not refuse the commands below at maxmemory.
  if held == 1 then redis.call('del', hold) end
  local done, granted = pcall(function()
    tidy(queue, found)
    return grant(hold, fence, queue, found, nil)
  end)
  if done and granted then return held == 1 and 0 or 1 end
end
reply = plain()
if window > 0 then
  pcall(open_window, queue, window)
  if polled then pcall(redis.call, 'hset', queue, 'polled', whole(now)) end
elseif found.over and not listened then
  redis.call('del', queue)
end
return reply
`;

/**
 * Refreshes queue entries, and grants a free hold to the first owner of its queue.
 *
 * Algorithm: for each entry by itself. An existing entry is refreshed. A missing one is never made again: its owner has
 * the hold by now, or has nothing.
 *
 * KEYS[3i-2] hold  KEYS[3i-1] fence key of the slot  KEYS[3i] wait queue
 * ARGV[3i-2] owner  ARGV[3i-1] time to live of its entry in ms  ARGV[3i] 1 when its process is not subscribed, else 0
 * ARGV[#KEYS+1] when a string counts as a hold
 * Reply: list, for each: 'q <entries before it> <remaining ms of the hold>': queued, and the kind of lock that has the
 *        hold, as in QUEUE_ACQUIRE; 'h <remaining ms>': it has the hold; 'gone'; or 'error <its text>'
 */
export const QUEUE_KEEP = `${BASICS}${WAIT_QUEUE}
local function keep(hold, fence, queue, me, span, not_subscribed)
  local ticket = redis.call('hget', queue, '@' .. me)
  local text = ticket and redis.call('hget', queue, ticket)
  local _, _, lease, tokens, _, owner = words_of(text or '')
  if not owner then
    if ${isForeign('ARGV[#KEYS + 1]', 'hold')} then return 'gone' end
    if redis.call('hexists', hold, me) == 1 then return 'h ' .. whole(redis.call('pttl', hold)) end
    return 'gone'
  end
  -- PEXPIRE needs no memory. After it Redis does not refuse the commands below at maxmemory.
  redis.call('pexpire', queue, whole(math.max(redis.call('pttl', queue), tonumber(span))))
  local kept = entry_text(now + span, span, lease, tokens, not_subscribed, owner)
  redis.call('hset', queue, ticket, kept)
  local left = redis.call('pttl', hold)
  local found = read_queue(queue)
  local window = left == -2 and window_left(found, hold) or 0
  local by
  if left ~= -2 and ${isForeign('ARGV[#KEYS + 1]', 'hold')} then by = '${FOREIGN_WORD}'
  elseif left ~= -2 then left, by = look_again_in(found, left), blocker(hold)
  elseif window > 0 then left = window
  else
    tidy(queue, found)
    local own = { ticket = ticket, text = kept, lease = lease, tokens = tonumber(tokens), not_subscribed = not_subscribed == '1', owner = owner }
    local granted = grant(hold, fence, queue, found, own)
    if granted and granted.owner == me then return 'h ' .. granted.lease end
    left = granted and tonumber(granted.lease) or 0
  end
  local before = 0
  while entry_at(found, before + 1) and entry_at(found, before + 1).owner ~= me do before = before + 1 end
  return 'q ' .. whole(before) .. ' ' .. blocked_for(left, by)
end
local replies = {}
for i = 1, #KEYS / 3 do
  local done, reply = pcall(keep, KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i],
    ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i])
  if done then replies[i] = reply
  else replies[i] = 'error ' .. text_of(reply) end
end
return replies
`;

/**
 * Ends whatever hold is there, notifies listeners, and grants the hold to the first owner in the queue.
 *
 * KEYS[1] hold  KEYS[2] fence key of the slot  KEYS[3] wait queue
 * ARGV[1] PUBLISH or SPUBLISH, for the announcement
 * Reply: integer  1 when there was a hold, else 0
 */
export const QUEUE_FORCE_UNLOCK = `${BASICS}${WAIT_QUEUE}
local hold, fence, queue = KEYS[1], KEYS[2], KEYS[3]
if redis.call('exists', hold) == 0 then return 0 end
-- Refuses another type of value before anything is told.
redis.call('hlen', hold)
${NOT_READ_WRITE}
redis.call(ARGV[1], channel_of(hold), '0')
redis.call('del', hold)
local fine, found = pcall(read_queue, queue)
-- Queued waiters receive the announcement, and retry if the hold is not granted here.
if fine and #found.entries > 0 then
  pcall(function()
    tidy(queue, found)
    grant(hold, fence, queue, found, nil)
  end)
end
return 1
`;

/**
 * Lists the waiters, in order: the first 64 living entries.
 *
 * KEYS[1] wait queue
 * Reply: list of owners
 */
export const QUEUE_INSPECT = `${BASICS}${WAIT_QUEUE}
local found, owners = read_queue(KEYS[1]), {}
while entry_at(found, #owners + 1) do owners[#owners + 1] = string.sub(entry_at(found, #owners + 1).owner, 1, 256) end
return owners
`;
