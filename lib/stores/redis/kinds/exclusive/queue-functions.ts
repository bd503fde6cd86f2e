import { TIME } from '../../connection/script-batch.js';
import { GRANT_CHANNELS } from '../../redis-keys.js';
import { nameBeside, counterOf, LEAVE, TAKEN } from './scripts.js';

/** Lua functions that the scripts of a wait queue share; see `queue-scripts.ts`. */

/** Channel that announces the end of a hold. No argument passes it, because most runs do not need it. */
export const CHANNEL = nameBeside('redisson_lock__channel:', 'hold');

/** Channel that notifies the process of the owner `one` of its grants. */
export const GRANT_CHANNEL = `'${GRANT_CHANNELS}' .. process_of(one.owner)`;
/** The same channel in a cluster: in the slot of the hold, whose tag the fence key has. */
export const SHARDED_GRANT_CHANNEL = `'${GRANT_CHANNELS}' .. string.match(fence, '{.*}') .. ':' .. process_of(one.owner)`;

/** Functions that the scripts of a wait queue also need when there are no waiters, below `TIME`. */
export const RULES = `
local function whole(n) return string.format('%.0f', n) end
local function refused(reply) return type(reply) == 'table' and reply.err end
local function no_token(fence) return 'FENCE ' .. fence .. ' holds no usable fencing token' end
local function text_of(failure) return type(failure) == 'table' and failure.err or tostring(failure) end
-- A negative number of tokens: tokens of Redisson's counter.
local function series_of(hold, fence, tokens) return tokens < 0 and ${counterOf('hold')} or fence end
local function first_token(fence, tokens)
  local first = tokens < 0 and 1 or time()[1] * 1000000 + time()[2]
  local stored = redis.call('get', fence)
  if stored then
    local last = string.match(stored, '^%d+$') and #stored <= 16 and tonumber(stored)
    if not last or last + math.abs(tokens) >= 9007199254740992 then return nil end
    if last >= first then first = last + 1 end
  end
  return first
end
`;

/** `TIME` and `RULES`. */
export const BASICS = TIME + RULES;

/** Version of the format of wait queues and their messages; see `docs/operations/wait-queue.md`. */
export const WIRE_VERSION = '1';

/** Maximum number of entries that one script reads. */
const MAX_LOOKED_AT = 64;

/**
 * Bounds of the yield window after a release, in ms. During it the lock is left to clients that listen to the
 * announcement without a queue entry. It lasts as long as the queue had the lock since these clients had it last. What
 * they take longer than that is their yield deficit: the queue has the lock for as long before the next window.
 */
export const LISTENERS_YIELD_MS = 3;
export const MAX_YIELD_MS = 50;
export const MAX_DEFICIT_MS = 500;
/** Time for which the deficit is remembered while the queue is empty, in ms. */
export const REMEMBERED_MS = 1_000;
/** Interval and length of the yield window for clients that only poll, in ms: Redisson's spin lock polls every 128. */
export const POLLERS_EVERY_MS = 1_000;
export const POLLERS_YIELD_MS = 40;
/** First interval at which the first entry checks whether a poller's hold has ended, in ms. */
const SOONEST_LOOK_MS = 10;
/**
 * More clients than a server has. Valkey 9.1 counts tens of millions of subscribers while the table of a channel grows (8,
 * 15, 29, 57 … subscribers). Then no window opens: it would open after each release.
 */
const MAX_RECEIVERS = 1_000_000;
/** Number of fields of a wait queue that are no entries: last, head, polled, yield, since. */
export const HEADER = 5;

/**
 * Functions that read a wait queue and grant the hold to its first entry. `open_window` opens a yield window,
 * and `close_window` ends it when an owner in the queue has the lock.
 *
 * `read_queue` reads the header, and the tickets up to the first entry that may get a grant. `entry_at` reads on as far as it
 * has to. `tidy` removes the dead entries that were met, gives those of another clock a time of this one, and moves the
 * head. An entry that cannot be read counts as dead. `grant` makes one entry the holder: hold,
 * time to live, fence, entry, and the message last. When no subscriber receives the message, it takes everything back
 * and tries the next entry. Without any entry left it returns nil. When a command is refused, no owner has the hold,
 * and it throws.
 */
export const WAIT_QUEUE = `${TAKEN}${LEAVE}
local now = time()[1] * 1000 + math.floor(time()[2] / 1000)
local function process_of(owner) return string.match(owner, '^(.*):') or owner end
local function channel_of(hold) return ${CHANNEL} end
local function more_listen(hold, entries)
  local receivers = redis.pcall('pubsub', 'numsub', channel_of(hold))
  return not refused(receivers) and receivers[2] > entries and receivers[2] < ${MAX_RECEIVERS}
end
local function open_window(queue, span)
  if redis.call('exists', queue) == 0 then
    redis.call('hset', queue, 'last', 0, 'head', 1, 'polled', whole(now), 'yield', 0, 'since', whole(now))
  end
  redis.call('hset', queue, 'yield', whole(now + span))
  redis.call('pexpire', queue, whole(math.max(redis.call('pttl', queue), span)))
end
local function close_window(queue, found)
  if found.till == 0 then return end
  redis.pcall('hset', queue, 'yield', 0, 'since', whole(now + math.min(now - found.till, ${MAX_DEFICIT_MS})))
end
-- An entry, whose first word is the version of the format. Other versions may only add words to the end.
local function entry_text(till, span, lease, tokens, not_subscribed, owner)
  return table.concat({ '${WIRE_VERSION}', whole(till), whole(span), lease, tokens, not_subscribed, owner }, ' ')
end
local function words_of(text)
  return string.match(text, '^%d+ (%d+) (%d+) (%d+) (%-?%d+) (%d) (%S+)')
end
local function read_entry(found, ticket, text)
  local till, span, lease, tokens, not_subscribed, owner = words_of(text)
  -- Redis refuses a longer lease.
  local left = till and #lease <= 15 and tonumber(till) - now or 0
  if left <= 0 then
    found.dead[#found.dead + 1] = { ticket = ticket, owner = owner }
    return
  end
  found.head = found.head or ticket
  if left > tonumber(span) then
    found.ahead[#found.ahead + 1] = { ticket = ticket, text = text, till = whole(now + span) }
    return
  end
  found.entries[#found.entries + 1] =
    { ticket = ticket, text = text, lease = lease, tokens = tonumber(tokens), not_subscribed = not_subscribed == '1', owner = owner }
end
local function entry_at(found, i)
  while not found.entries[i] and found.at <= found.last and found.at - found.first < ${MAX_LOOKED_AT} do
    local text = redis.call('hget', found.queue, whole(found.at))
    if text then read_entry(found, found.at, text) end
    found.at = found.at + 1
  end
  return found.entries[i]
end
local function read_queue(queue)
  local function number(field, otherwise) return tonumber(redis.call('hget', queue, field)) or otherwise end
  local found = { queue = queue, entries = {}, dead = {}, ahead = {}, size = redis.call('hlen', queue),
    last = number('last', 0), first = number('head', 1), polled = number('polled', 0), till = number('yield', 0),
    since = number('since', 0) }
  found.count = math.max(0, math.floor((found.size - ${HEADER}) / 2))
  local window = found.till - now
  -- A later end comes from another clock.
  found.window = window <= ${MAX_YIELD_MS} and math.max(0, window) or 0
  found.at = found.first
  entry_at(found, 1)
  found.head = found.head or found.at
  found.over = found.head > found.last
  return found
end
local function is_for_pollers(found) return found.till - found.polled <= ${POLLERS_YIELD_MS} end
local function window_left(found, hold)
  if found.window == 0 then return 0 end
  if more_listen(hold, found.count) or is_for_pollers(found) then return found.window end
  return 0
end
-- Text about the blocking hold, for replies to entries.
local function blocked_for(left, by) return by and whole(left) .. ' ' .. by or whole(left) end
-- A client that only polls does not announce the end of its hold.
local function look_again_in(found, left)
  if found.till == 0 or found.window > 0 or not is_for_pollers(found) then return left end
  local soon = math.max(${SOONEST_LOOK_MS}, math.floor((now - found.till) / 4))
  if left < 0 then return soon end
  return math.min(left, soon)
end
local function tidy(queue, found)
  for _, one in ipairs(found.dead) do
    redis.call('hdel', queue, whole(one.ticket))
    if one.owner then
      redis.call('hdel', queue, '@' .. one.owner)
      found.count = found.count - 1
    end
  end
  for _, one in ipairs(found.ahead) do
    redis.pcall('hset', queue, whole(one.ticket), (string.gsub(one.text, '^(%d+) %d+', '%1 ' .. one.till)))
  end
  if found.over and found.till == 0 then redis.call('del', queue)
  elseif found.head > found.first then redis.call('hset', queue, 'head', whole(found.head)) end
end
-- own: the entry of the requesting owner, in case that it is beyond the entries that are read.
local function grant(hold, fence, queue, found, own)
  local me = own and own.owner
  local i, met = 0, not own
  while true do
    i = i + 1
    local one = entry_at(found, i)
    if not one then
      if met then return nil end
      one = own
    end
    met = met or one.owner == me
    local token, count, series = 0, math.abs(one.tokens), series_of(hold, fence, one.tokens)
    if count > 0 then
      local read, first = pcall(first_token, series, one.tokens)
      token = read and first
      if not token and one.owner == me then error(read and no_token(series) or text_of(first), 0) end
    end
    if token then
      local function sure(reply)
        if not refused(reply) then return reply end
        redis.call('del', hold)
        error(reply.err, 0)
      end
      redis.call('hset', hold, one.owner, 1)
      sure(redis.pcall('pexpire', hold, one.lease))
      if count > 0 then sure(redis.pcall('set', series, whole(token + count - 1))) end
      sure(redis.pcall('hdel', queue, whole(one.ticket), '@' .. one.owner))
      one.token, one.count, one.left = token, count, found.count - 1
      local function settled()
        close_window(queue, found)
        if one.left < 1 and redis.call('hlen', queue) <= ${HEADER} then
          if found.till == 0 then redis.call('del', queue) else redis.pcall('pexpire', queue, ${REMEMBERED_MS}) end
        end
        return one
      end
      if one.owner == me or one.not_subscribed then return settled() end
      local message = table.concat(
        { 'grant', '${WIRE_VERSION}', one.owner, whole(token), whole(count), one.lease, whole(one.left) }, ' ')
        .. '\\n' .. hold
      local receivers = redis.pcall('publish', ${GRANT_CHANNEL}, message)
      if not refused(receivers) and receivers ~= 0 then return settled() end
      redis.call('del', hold)
      redis.call('hset', queue, whole(one.ticket), one.text, '@' .. one.owner, whole(one.ticket))
    end
  end
end
`;
