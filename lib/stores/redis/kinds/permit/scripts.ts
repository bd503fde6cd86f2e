/**
 * The scripts of permits, in the layout of Redisson's RPermitExpirableSemaphore: a counter of the permits that are
 * free, and a sorted set with one member of 16 bytes for each that is not; its score is when it ends, in whole ms of
 * the server's clock. Counter and members together are the limit, and every script changes both in one step.
 *
 * Owners are given as 32 hexadecimal digits. Every script checks all it depends on before its first write.
 */

/** Members by their digits, the server's time in ms, and an error for a counter that is none. */
const COMMON = `
if redis.replicate_commands then redis.replicate_commands() end
local function bytes(hex)
  return (string.gsub(hex, '..', function(two) return string.char(tonumber(two, 16)) end))
end
local clock = redis.call('time')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function whole(n) return string.format('%.0f', n) end
local function counted(text)
  return text and #text <= 16 and string.match(text, '^-?%d+$') and tonumber(text)
end
local NO_COUNTER = 'WRONGTYPE the value there is no number of permits'
`;

/**
 * Takes one permit for an owner, or tells when the next one ends.
 *
 * Algorithm: permits whose time is over go back to the counter. Then the limit, when one is given, is set as
 * Redisson's setPermits does: a counter that is not there begins with it, another one is raised or lowered by the
 * difference to counter and members together. If a permit is free it is taken. An owner who has one already is only
 * given the full lease again. A counter with a time to live (one that this script made) lives as long as the longest
 * lease; one without keeps having none.
 *
 * KEYS[1] counter  KEYS[2] sorted set
 * ARGV[1] owner  ARGV[2] lease in ms  ARGV[3] limit, '' to leave it  ARGV[4] channel  ARGV[5] PUBLISH or SPUBLISH
 * Reply: list: 1 when granted, else 0; when refused, ms until the next permit ends, -1 when none ever does; the limit
 *        before, when the given one has changed it, else -1
 *        error PERMITS when nobody has given a limit yet, WRONGTYPE when the counter is no number
 */
export const PERMIT_ACQUIRE = `${COMMON}
local member = bytes(ARGV[1])
local text = redis.call('get', KEYS[1])
local free = counted(text)
if text and not free then return redis.error_reply(NO_COUNTER) end
if not text and ARGV[3] == '' then
  return redis.error_reply('PERMITS nobody has said yet how many there are: pass the number as permits')
end
local own = redis.call('zscore', KEYS[2], member)
local ended = redis.call('zrangebyscore', KEYS[2], 0, whole(now))
local taken = redis.call('zcard', KEYS[2]) - #ended
local ttl = redis.call('pttl', KEYS[1])
local before = -1
local add = #ended
if ARGV[3] ~= '' then
  local limit = tonumber(ARGV[3])
  if not text then
    free, add = 0, limit - taken
  elseif free + #ended + taken ~= limit then
    before = free + #ended + taken
    add = limit - taken - free
  end
end
local left = free + add
local lives = own and tonumber(own) > now
local granted = lives or left >= 1
local lease = tonumber(ARGV[2])
if add > 0 and left > (granted and not lives and 1 or 0) then
  redis.call(ARGV[5], ARGV[4], whole(left))
end
if #ended > 0 then redis.call('zremrangebyscore', KEYS[2], 0, whole(now)) end
if granted and not lives then add = add - 1 end
if not text then
  redis.call('set', KEYS[1], whole(add), 'px', ARGV[2])
  ttl = lease
elseif add ~= 0 then
  redis.call('incrby', KEYS[1], whole(add))
end
if granted then redis.call('zadd', KEYS[2], whole(now + lease), member) end
if ttl >= 0 then
  if ttl < lease then
    redis.call('pexpire', KEYS[1], ARGV[2])
    ttl = lease
  end
  redis.call('pexpire', KEYS[2], whole(ttl))
end
if granted then return { 1, -1, before } end
local first = redis.call('zrange', KEYS[2], 0, 0, 'withscores')
local wait = -1
if first[2] and first[2] ~= '922337203685477' then wait = tonumber(first[2]) - now end
return { 0, wait, before }
`;

/**
 * Gives an owner's permit back and wakes who waits for one. A permit that is not there is not given back again. With a
 * time to stay it ends by itself when that is over.
 *
 * KEYS[1] counter  KEYS[2] sorted set
 * ARGV[1] owner  ARGV[2] channel  ARGV[3] PUBLISH or SPUBLISH  ARGV[4] for how many more ms it stays, '' for none
 * Reply: integer  number of subscribers that were told, -1 when the owner did not have it any more
 */
export const PERMIT_RELEASE = `${COMMON}
local member = bytes(ARGV[1])
local score = redis.pcall('zscore', KEYS[2], member)
if type(score) == 'table' then
  if string.find(score.err, 'WRONGTYPE', 1, true) then return -1 end
  return score
end
if not score then return -1 end
local lives = tonumber(score) > now
if lives and ARGV[4] ~= '' then
  local told = redis.call(ARGV[3], ARGV[2], '0')
  redis.call('zadd', KEYS[2], whole(now + tonumber(ARGV[4])), member)
  return told
end
local free = counted(redis.call('get', KEYS[1]))
local told = 0
if free then told = redis.call(ARGV[3], ARGV[2], whole(free + 1)) end
redis.call('zrem', KEYS[2], member)
if free then redis.call('incrby', KEYS[1], 1) end
if lives then return told end
return -1
`;

/**
 * Lengthens many permits: each on its own, never shortens one, never brings one back whose time is over. Counters that
 * have a time to live get one as long as the lease.
 *
 * KEYS[2i-1]  counter  KEYS[2i] sorted set
 * ARGV[2i-1]  owner    ARGV[2i] lease in ms
 * Reply: list, for each: integer what is left in ms, -1 when lost, or a string: the error
 */
export const PERMIT_EXTEND = `${COMMON}
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
      redis.call('zadd', set, whole(now + lease), member)
      left = lease
    end
    local ttl = redis.call('pttl', counter)
    if ttl >= 0 then
      if ttl < left then redis.call('pexpire', counter, whole(left)) end
      redis.call('pexpire', set, whole(math.max(ttl, left)))
    end
    replies[i] = left
  end
end
return replies
`;

/**
 * Tells who has a permit whose time is not over: the first 100.
 *
 * KEYS[1] counter  KEYS[2] sorted set
 * Reply: list, for each: owner (32 hexadecimal digits), time left in ms (-1 for one without an end)
 */
export const PERMIT_INSPECT = `${COMMON}
local text = redis.call('get', KEYS[1])
if text and not counted(text) then return redis.error_reply(NO_COUNTER) end
local found = redis.call('zrangebyscore', KEYS[2], '(' .. whole(now), '+inf', 'withscores', 'limit', 0, 100)
local reply = {}
for i = 1, #found, 2 do
  local digits = string.gsub(found[i], '.', function(c) return string.format('%02x', string.byte(c)) end)
  reply[i] = string.sub(digits, 1, 256)
  reply[i + 1] = -1
  if found[i + 1] ~= '922337203685477' then reply[i + 1] = tonumber(found[i + 1]) - now end
end
return reply
`;

/**
 * Gives back all permits that are taken, and wakes who waits for one.
 *
 * KEYS[1] counter  KEYS[2] sorted set
 * ARGV[1] channel  ARGV[2] PUBLISH or SPUBLISH
 * Reply: integer  1 when there was one, else 0
 */
export const PERMIT_FORCE_UNLOCK = `${COMMON}
local text = redis.call('get', KEYS[1])
local free = counted(text)
if text and not free then return redis.error_reply(NO_COUNTER) end
local taken = redis.call('zcard', KEYS[2])
if taken == 0 then return 0 end
if free then redis.call(ARGV[2], ARGV[1], whole(free + taken)) end
redis.call('del', KEYS[2])
if free then redis.call('incrby', KEYS[1], taken) end
return 1
`;
