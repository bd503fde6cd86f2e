/**
 * The scripts of the exclusive lock. The hold is Redisson's: a hash with one field, the owner's id, whose value
 * is the hold count, and a time to live. All state changes of one step are one script.
 *
 * Every script checks all it depends on before its first write, so an error reply means that no hold was changed.
 */

/**
 * Takes the hold for an owner, or tells what is left of the one in the way.
 *
 * Algorithm: a free key becomes a hash with the owner's field at 1; the owner's own hold is only re-armed (a
 * repeated request takes nothing twice). Both get the full lease and, if asked for, a block of fencing tokens:
 * max(stored + 1, server time in µs), of which the last is stored. So tokens grow without a counter per lock,
 * survive a clock that steps back, and keep growing when the stored value is lost.
 *
 * Should the time to live be refused (a user without that permission), the hold goes again: nothing may stay for
 * ever. It cannot be tried out first, because after its first write Redis lets a script pass its memory limit.
 *
 * KEYS[1] hold   KEYS[2] fence key of the hold's slot (only when ARGV[3] > 0)
 * ARGV[1] owner  ARGV[2] lease in ms  ARGV[3] number of tokens to reserve, 0 for none
 * ARGV[4] channel  ARGV[5] PUBLISH or SPUBLISH (only when re-arming: to tell who waits that it ends sooner now)
 * Reply: integer  what is left of the other hold in ms, -1 for one without an end
 *        string   granted: the first token, '0' when none was asked for
 *        error    FENCE when the fence key holds no usable number
 */
export const EXCLUSIVE_ACQUIRE = `
local left = redis.call('pttl', KEYS[1])
if left ~= -2 and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return left
end
local token, top = '0', nil
local block = tonumber(ARGV[3])
if block > 0 then
  if redis.replicate_commands then redis.replicate_commands() end
  local now = redis.call('time')
  local first = now[1] * 1000000 + now[2]
  local stored = redis.call('get', KEYS[2])
  if stored then
    local last = string.match(stored, '^%d+$') and #stored <= 16 and tonumber(stored)
    if not last or last + block >= 9007199254740992 then
      return redis.error_reply('FENCE ' .. KEYS[2] .. ' holds no usable fencing token')
    end
    if last >= first then first = last + 1 end
  end
  token = string.format('%.0f', first)
  top = string.format('%.0f', first + block - 1)
end
if ARGV[4] and left > tonumber(ARGV[2]) then redis.call(ARGV[5], ARGV[4], '0') end
if top then redis.call('set', KEYS[2], top) end
if left == -2 then redis.call('hset', KEYS[1], ARGV[1], 1) end
local armed = redis.pcall('pexpire', KEYS[1], ARGV[2])
if type(armed) == 'table' then
  if left == -2 then redis.call('del', KEYS[1]) end
  return armed
end
return token
`;

/**
 * Ends the owner's hold and wakes who waits for it.
 *
 * Algorithm: announce, then delete. The announcement comes first because it is what can be refused (a missing
 * permission), and subscribers get it only after the script. Neither needs memory, so it works at OOM. A hold that
 * has to stay for a while gets just that time to live instead.
 *
 * KEYS[1] hold
 * ARGV[1] owner  ARGV[2] channel  ARGV[3] PUBLISH or SPUBLISH
 * ARGV[4] for how many more ms the hold stays (only when it shall)
 * Reply: integer  number of subscribers that were told, -1 when the owner did not hold it; also where another type of
 *                 value is, which stays
 */
export const EXCLUSIVE_RELEASE = `
local held = redis.pcall('hexists', KEYS[1], ARGV[1])
if held ~= 1 then
  if held == 0 or string.find(held.err, 'WRONGTYPE', 1, true) then return -1 end
  return held
end
local told = redis.call(ARGV[3], ARGV[2], '0')
if ARGV[4] then
  redis.call('pexpire', KEYS[1], ARGV[4])
else
  redis.call('del', KEYS[1])
end
return told
`;

/**
 * Lengthens many holds.
 *
 * Algorithm: for each key on its own, if the owner's field is there, raise the time to live to the lease; never
 * lower it, never create anything. A key that cannot be asked does not stop the others.
 *
 * KEYS[i]     hold
 * ARGV[2i-1]  owner  ARGV[2i] lease in ms
 * Reply: list, for each key: integer what is left in ms, -1 when lost, or a string: the error
 */
export const EXCLUSIVE_EXTEND = `
local replies = {}
for i = 1, #KEYS do
  local held = redis.pcall('hexists', KEYS[i], ARGV[2 * i - 1])
  if type(held) == 'table' then
    replies[i] = held.err
  elseif held == 0 then
    replies[i] = -1
  else
    local lease = tonumber(ARGV[2 * i])
    local left = redis.call('pttl', KEYS[i])
    if left < lease then
      redis.call('pexpire', KEYS[i], lease)
      left = lease
    end
    replies[i] = left
  end
end
return replies
`;

/**
 * Ends whatever hold is there, and wakes who waits for it.
 *
 * KEYS[1] hold
 * ARGV[1] channel  ARGV[2] PUBLISH or SPUBLISH
 * Reply: integer  1 when there was a hold, else 0
 */
export const EXCLUSIVE_FORCE_UNLOCK = `
if redis.call('exists', KEYS[1]) == 0 then
  return 0
end
-- Refuses another type of value before anything is told.
redis.call('hlen', KEYS[1])
redis.call(ARGV[2], ARGV[1], '0')
return redis.call('del', KEYS[1])
`;

/**
 * Tells who has the hold. Looks at few fields only, however large a foreign hash may be, and answers no more of one
 * than an owner and a count can have.
 *
 * Algorithm: the first field is the owner, but not "mode": a read-write lock of Redisson has that beside its owners.
 * A step of HSCAN may bring nothing, so there are some.
 *
 * KEYS[1] hold
 * Reply: nil when free, else list: owner (empty when none is found), hold count, time left in ms (-1 for one without
 *        an end)
 */
export const EXCLUSIVE_INSPECT = `
local left = redis.call('pttl', KEYS[1])
if left == -2 then
  return nil
end
local cursor = '0'
for _ = 1, 10 do
  local step = redis.call('hscan', KEYS[1], cursor, 'count', 1)
  for i = 1, #step[2], 2 do
    if step[2][i] ~= 'mode' then
      return { string.sub(step[2][i], 1, 256), string.sub(step[2][i + 1], 1, 32), left }
    end
  end
  cursor = step[1]
  if cursor == '0' then break end
end
return { '', '1', left }
`;
