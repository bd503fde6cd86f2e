import { NO_NUMBER_OF_PERMITS } from '../../../../core/kinds/permit.kind.js';

/**
 * The scripts of permits, in the layout of Redisson's RPermitExpirableSemaphore. There is a counter of the free
 * permits, and a sorted set with one member of 16 bytes for each acquired permit. The member's score is the end of the
 * permit, in whole ms of the server's clock. Counter and members together are the limit, and every script changes both
 * in one step.
 *
 * Owners are given as 32 hexadecimal digits. Every script checks everything that it depends on before its first write.
 * It takes back what it has written when a later command is refused (a user without that permission).
 */

/**
 * Members by their digits, the server's time in ms, an error for an unusable counter, and times to live.
 *
 * A counter with a time to live was made by these scripts. It and its set live until the last permit has ended, or as
 * long as the lease of a rejected caller, to the same ms. A counter without one is Java's, and its set must not have
 * one either. When Java's trySetPermits takes over a counter of ours, it leaves the time to live on the set: the
 * scripts remove it.
 */
const COMMON = `
if redis.replicate_commands then redis.replicate_commands() end
local function bytes(hex)
  return (string.gsub(hex, '..', function(two) return string.char(tonumber(two, 16)) end))
end
local clock = redis.call('time')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function whole(n) return string.format('%.0f', n) end
local function counted(text)
  local n = text and #text <= 15 and string.match(text, '^-?%d+$') and tonumber(text)
  return text ~= '-0' and n and whole(n) == text and n
end
local NO_COUNTER = 'WRONGTYPE the value there is no number of permits'
local function last(set)
  return tonumber(redis.call('zrange', set, -1, -1, 'withscores')[2] or '0')
end
local function refused(reply) return type(reply) == 'table' and reply.err end
local function foreign(reply) return refused(reply) and string.find(reply.err, 'WRONGTYPE', 1, true) end
-- The counter was deleted, and another value has taken its place: leave that alone.
local function counter_ttl(counter)
  local text = redis.pcall('get', counter)
  if refused(text) and not foreign(text) then return text end
  if type(text) ~= 'string' or not counted(text) then return -2 end
  return redis.call('pttl', counter)
end
local function outlive(counter, set, ttl, latest)
  if refused(ttl) then return ttl end
  if ttl == -1 then return redis.pcall('persist', set) end
  -- The counter was deleted: only the set tells which owners have a permit.
  if ttl < 0 then return redis.pcall('pexpireat', set, whole(latest)) end
  local ends = whole(math.max(now + ttl, latest))
  local done = redis.pcall('pexpireat', counter, ends)
  if type(done) == 'table' then return done end
  return redis.pcall('pexpireat', set, ends)
end
`;

/**
 * Acquires one permit for an owner, or replies when the next one ends.
 *
 * Algorithm: expired permits go back to the counter. Then a given limit is set as Redisson's setPermits does. A missing
 * counter begins with it; an existing one changes by the difference between the limit and the sum of counter and
 * members. If a permit is free, the owner gets it. An owner that has one already only gets the full lease again; when
 * that ends sooner than the one before, waiters are notified.
 *
 * KEYS[1] counter  KEYS[2] sorted set
 * ARGV[1] owner  ARGV[2] lease in ms  ARGV[3] limit, '' to leave it  ARGV[4] channel  ARGV[5] PUBLISH or SPUBLISH
 * Reply: list: 1 when granted, else 0; when taken, ms until the next permit ends, -1 when none ever does; the limit
 *        before, when the given one has changed it, else -1
 *        error PERMITS when there is no limit, WRONGTYPE when the counter is no number
 */
export const PERMIT_ACQUIRE: string = `${COMMON}
local member = bytes(ARGV[1])
local text = redis.call('get', KEYS[1])
local free = counted(text)
if text and not free then return redis.error_reply(NO_COUNTER) end
if not text and ARGV[3] == '' then
  return redis.error_reply('PERMITS ${NO_NUMBER_OF_PERMITS}')
end
local own = tonumber(redis.call('zscore', KEYS[2], member) or '0')
local ended = redis.call('zcount', KEYS[2], 0, whole(now))
local taken = redis.call('zcard', KEYS[2]) - ended
local ttl = redis.call('pttl', KEYS[1])
local latest = last(KEYS[2])
local before = -1
local add = ended
if ARGV[3] ~= '' then
  local limit = tonumber(ARGV[3])
  if not text then
    free, add = 0, limit - taken
  elseif free + ended + taken ~= limit then
    before = free + ended + taken
    add = limit - taken - free
  end
end
local left = free + add
local lives = own > now
local takes = not lives and left >= 1
local lease = tonumber(ARGV[2])
if takes then left = left - 1 end
if add > 0 and left > 0 then
  redis.call(ARGV[5], ARGV[4], whole(left))
elseif lives and own > now + lease then
  redis.call(ARGV[5], ARGV[4], '1')
end
if takes then add = add - 1 end
if not text then
  redis.call('set', KEYS[1], whole(add), 'px', ARGV[2])
  ttl = lease
elseif add ~= 0 then
  redis.call('incrby', KEYS[1], whole(add))
end
local failed
if ended > 0 then
  local gone = redis.pcall('zremrangebyscore', KEYS[2], 0, whole(now))
  if refused(gone) then
    if text then redis.call('incrby', KEYS[1], whole(-add)) else redis.call('del', KEYS[1]) end
    return gone
  end
end
if takes or lives then
  local had = redis.pcall('zadd', KEYS[2], whole(now + lease), member)
  if refused(had) then
    if takes then redis.call('incrby', KEYS[1], 1) end
    takes, failed = false, had
  end
end
local armed = outlive(KEYS[1], KEYS[2], ttl, math.max(latest, now + lease))
if failed then return failed end
if refused(armed) then
  if takes then
    redis.call('zrem', KEYS[2], member)
    redis.call('incrby', KEYS[1], 1)
  end
  return armed
end
if takes or lives then return { 1, -1, before } end
local first = redis.call('zrange', KEYS[2], 0, 0, 'withscores')[2]
if not first or first == '922337203685477' then return { 0, -1, before } end
return { 0, tonumber(first) - now, before }
`;

/**
 * Releases an owner's permit and notifies waiters. A missing permit is not released again. An expired one goes back to
 * the counter, and counts as not held. With a time to stay, the permit ends by itself when that is over.
 *
 * No command here needs memory. But as the first write of a script, ZADD would be refused for lack of it.
 *
 * KEYS[1] counter  KEYS[2] sorted set
 * ARGV[1] owner  ARGV[2] channel  ARGV[3] PUBLISH or SPUBLISH  ARGV[4] for how many more ms it stays, '' for none
 * Reply: integer  number of notified subscribers, -1 when the owner did not have it any more
 */
export const PERMIT_RELEASE: string = `${COMMON}
local member = bytes(ARGV[1])
local score = redis.pcall('zscore', KEYS[2], member)
if foreign(score) then return -1 end
if refused(score) then return score end
if not score then return -1 end
local lives = tonumber(score) > now
if lives and ARGV[4] ~= '' then
  local ttl, latest = counter_ttl(KEYS[1]), last(KEYS[2])
  local stays = now + tonumber(ARGV[4])
  local receivers = redis.call(ARGV[3], ARGV[2], '1')
  redis.call('zremrangebyscore', KEYS[2], 1, 0)
  redis.call('zadd', KEYS[2], whole(stays), member)
  local armed = outlive(KEYS[1], KEYS[2], ttl, math.max(latest, stays))
  if not refused(armed) then return receivers end
  redis.call('zadd', KEYS[2], score, member)
  return armed
end
local text = redis.pcall('get', KEYS[1])
if refused(text) and not foreign(text) then return text end
local free = type(text) == 'string' and counted(text)
local receivers = redis.call(ARGV[3], ARGV[2], whole((free or 0) + 1))
-- Removes nothing: after a first write that needs no memory, INCRBY is not refused for lack of memory.
redis.pcall('zremrangebyscore', KEYS[2], 1, 0)
local back = free and redis.pcall('incrby', KEYS[1], 1)
if refused(back) then return back end
local gone = redis.pcall('zrem', KEYS[2], member)
if refused(gone) then
  if free then redis.call('incrby', KEYS[1], -1) end
  return gone
end
-- Java's addPermits removes the time to live of the counter only: Java's permits would end with the last one of ours.
if free and redis.pcall('pttl', KEYS[1]) == -1 then redis.pcall('persist', KEYS[2]) end
if lives then return receivers end
return -1
`;

/**
 * Extends many permits. It never shortens a permit, and never brings back an expired one. Counters with a time to live
 * get one as long as the lease. If Redis refuses that, the permit stays as it was and the reply is the error. A permit
 * that fails does not affect the others. Works when the memory is full, as a release does.
 *
 * KEYS[2i-1]  counter  KEYS[2i] sorted set
 * ARGV[2i-1]  owner    ARGV[2i] lease in ms
 * Reply: list, for each: integer: remaining ms, -1 when lost; or a string: the error
 */
export const PERMIT_EXTEND: string = `${COMMON}
local replies = {}
for i = 1, #KEYS / 2 do
  local counter, set = KEYS[2 * i - 1], KEYS[2 * i]
  local member = bytes(ARGV[2 * i - 1])
  local score = redis.pcall('zscore', set, member)
  if type(score) == 'table' then
    replies[i] = score.err
  elseif not score or tonumber(score) <= now then
    replies[i] = -1
  else
    local lease = tonumber(ARGV[2 * i])
    local left = tonumber(score) - now
    if left < lease then
      local ttl, latest = counter_ttl(counter), last(set)
      redis.call('zremrangebyscore', set, 1, 0)
      redis.call('zadd', set, whole(now + lease), member)
      local armed = outlive(counter, set, ttl, math.max(latest, now + lease))
      if refused(armed) then redis.call('zadd', set, score, member) end
      left = refused(armed) or lease
    end
    replies[i] = left
  end
end
return replies
`;

/**
 * Counts permits, and lists the first 100 that have not expired.
 *
 * KEYS[1] counter  KEYS[2] sorted set
 * Reply: list: the number of permits, -1 without a counter; how many are free; then for each holder: owner (32
 *        hexadecimal digits), remaining ms (-1 for a
 *        permit without an end)
 */
export const PERMIT_INSPECT: string = `${COMMON}
local text = redis.call('get', KEYS[1])
local free = counted(text)
if text and not free then return redis.error_reply(NO_COUNTER) end
local permits = free and math.max(0, tonumber(free) + redis.call('zcard', KEYS[2])) or -1
local living = redis.call('zcount', KEYS[2], '(' .. whole(now), '+inf')
local found = redis.call('zrangebyscore', KEYS[2], '(' .. whole(now), '+inf', 'withscores', 'limit', 0, 100)
local reply = { permits, math.max(0, permits - living) }
for i = 1, #found, 2 do
  local digits = string.gsub(string.sub(found[i], 1, 128), '.', function(c)
    return string.format('%02x', string.byte(c))
  end)
  reply[i + 2] = digits
  reply[i + 3] = -1
  if found[i + 1] ~= '922337203685477' then reply[i + 3] = tonumber(found[i + 1]) - now end
end
return reply
`;

/**
 * Releases all acquired permits and notifies waiters. When there are none, it deletes a counter that these scripts
 * made, so that the key can be used for something else.
 *
 * KEYS[1] counter  KEYS[2] sorted set
 * ARGV[1] channel  ARGV[2] PUBLISH or SPUBLISH
 * Reply: integer  1 when an owner had a permit, else 0
 */
export const PERMIT_FORCE_UNLOCK: string = `${COMMON}
local text = redis.call('get', KEYS[1])
local free = counted(text)
if text and not free then return redis.error_reply(NO_COUNTER) end
local taken = redis.call('zcard', KEYS[2])
if taken == 0 then
  if free and redis.call('pttl', KEYS[1]) >= 0 then redis.call('del', KEYS[1]) end
  return 0
end
local living = redis.call('zcount', KEYS[2], '(' .. whole(now), '+inf')
redis.call(ARGV[2], ARGV[1], whole((free or 0) + taken))
-- As in a release.
redis.call('zremrangebyscore', KEYS[2], 1, 0)
if free then redis.call('incrby', KEYS[1], taken) end
local gone = redis.pcall('del', KEYS[2])
if refused(gone) then
  if free then redis.call('incrby', KEYS[1], -taken) end
  return gone
end
return living > 0 and 1 or 0
`;
