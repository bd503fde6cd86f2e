import { COUNTER_PREFIX } from '../../../key-rule.js';
import { TIME } from '../../connection/script-batch.js';
import { orProposed, readTokens } from '../tokens-argument.js';

/**
 * The scripts of the exclusive lock. The hold is Redisson's: a hash with one field, the owner's id, whose value
 * is the hold count, and a time to live. All state changes of one step are one script.
 *
 * Every script checks all it depends on before its first write, so an error reply means that no hold was changed.
 */

/** Returns a Lua expression for the key that Redisson has beside a hold. `hold` is one for the name of the hold. */
export const nameBeside = (prefix: string, hold: string): string =>
  `'${prefix}' .. (string.find(${hold}, '{', 1, true) and ${hold} or '{' .. ${hold} .. '}')`;

/**
 * Returns a Lua expression for Redisson's token counter of a lock. It is not among KEYS, because only the script finds
 * out whether the next queue entry wants such tokens. It is in the slot of the hold.
 */
export const counterOf = (hold: string): string => nameBeside(COUNTER_PREFIX, hold);

/** Name of the type in Redis that other lock libraries keep their locks in. */
const STRING_TYPE = 'string';

/** What the scripts call a string of another lock library. */
export const FOREIGN_WORD = 'foreign';

/** Lua pattern for the beginning of this library's owners: the process, whose id is a UUID of version 8. */
export const OWN_PROCESS = '%x+%-%x+%-8%x+%-%x+%-%x+';

/**
 * The function `blocker`: which kind of lock has a hold that is not the caller's. Returns nil for an exclusive lock
 * of this library, else a string:
 *
 * - 'read' or 'write': a read-write lock, by its field "mode";
 * - 'own_fair': a fair lock of this library, by its owner;
 * - 'fair': a fair lock of Redisson, whose queue is there;
 * - 'other': a plain or spin lock of Redisson, or a fair one without waiters, which look alike.
 *
 * Without a permission the kind stays unknown: only the time until the next look depends on it. A user of the exclusive
 * lock alone has no right to the queue. The function checks that before it touches the queue, because each refusal is
 * recorded in ACL LOG. On servers without that check, such as Redis before 7, it does not touch the queue.
 */
export const BLOCKER = `local function blocker(hold)
  local seen = redis.pcall('hscan', hold, '0', 'count', 1)
  if seen.err then return nil end
  local mode, owner
  for i = 1, #seen[2], 2 do
    if seen[2][i] == 'mode' then mode = seen[2][i + 1] else owner = seen[2][i] end
  end
  if not mode and seen[1] ~= '0' then mode = redis.pcall('hget', hold, 'mode') end
  if mode == 'read' or mode == 'write' then return mode end
  if owner and string.match(owner, '^${OWN_PROCESS}:%d+$') then return nil end
  if owner and string.match(owner, '^${OWN_PROCESS}:fair:%d+$') then return 'own_fair' end
  local queue = ${nameBeside('redisson_lock_queue:', 'hold')}
  local may_ask = redis.acl_check_cmd and redis.acl_check_cmd('exists', queue)
  if may_ask and redis.call('exists', queue) == 1 then return 'fair' end
  return 'other'
end
`;

/**
 * Returns a Lua expression for whether another program's string has the name of a hold. Only a store with
 * `foreignHold: 'taken'` sends what \`asked\` is. Asks for the type only if the value is no hash: for locks without a
 * string a user needs no right to TYPE.
 *
 * @param asked argument with which the store asks for it
 */
export const isForeign = (asked: string, hold: string): string =>
  `${asked} and type(redis.pcall('hexists', ${hold}, 'mode')) == 'table' and redis.call('type', ${hold}).ok == '${STRING_TYPE}'`;

/** The function `taken`: the reply to an owner that does not get the hold. `left` is its remaining ms. */
export const TAKEN = `${BLOCKER}local function taken(hold, left)
  local by = blocker(hold)
  if not by then return left end
  return 't ' .. string.format('%.0f', left) .. ' ' .. by
end
`;

/**
 * The function `is_entered`: whether Redisson's read-write lock, whose scripts do not check, has entered the owner's
 * hold. The function `leave`: ends only the owner's part of such a hold. When no other owner is left in it, the hold
 * goes, because a mode alone would block every owner.
 */
export const LEAVE = `local function is_entered(hold)
  local size = redis.pcall('hlen', hold)
  return type(size) == 'number' and size > 1 and redis.call('hexists', hold, 'mode') == 1
end
local function leave(hold, me)
  redis.pcall('hdel', hold, me)
  if redis.call('hexists', hold, 'mode') == 1 and not is_entered(hold) then redis.call('del', hold) end
end
`;

/**
 * The end of a script that acquires a hold, which is free or the owner's. `left` is its PTTL.
 *
 * Needs `TIME`, and KEYS and ARGV of `EXCLUSIVE_ACQUIRE`.
 */
export const TAKE = `local token, top = '0', nil
${readTokens('ARGV[3]')}
local series = KEYS[2]
if block ~= 0 then
  local first = 1
  if block < 0 then
    block, series = -block, ${counterOf('KEYS[1]')}
  else
    local now = time()
    first = now[1] * 1000000 + now[2]
    ${orProposed('first')}
  end
  local stored = redis.call('get', series)
  if stored then
    local last = string.match(stored, '^%d+$') and #stored <= 16 and tonumber(stored)
    if not last or last + block >= 9007199254740992 then
      return redis.error_reply('FENCE ' .. series .. ' holds no usable fencing token')
    end
    if last >= first then first = last + 1 end
  end
  token = string.format('%.0f', first)
  top = block == 1 and token or string.format('%.0f', first + block - 1)
end
if ARGV[4] and left > tonumber(ARGV[2]) then redis.call(ARGV[5], ARGV[4], '0') end
if top then redis.call('set', series, top) end
if left == -2 then redis.call('hset', KEYS[1], ARGV[1], 1) end
local armed = redis.pcall('pexpire', KEYS[1], ARGV[2])
if type(armed) == 'table' then
  if left == -2 then redis.call('del', KEYS[1]) end
  return armed
end
return token
`;

/**
 * Acquires the hold for an owner, or replies with the remaining time of the blocking one.
 *
 * Algorithm: a free key becomes a hash with the owner's field at 1. The owner's own hold is reacquired, so a repeated
 * request acquires nothing twice. Both get the full lease and, if asked for, a block of fencing tokens: max(stored + 1,
 * server time in µs), of which the last is stored. A quorum proposes a token, so that all its nodes give the same one. It
 * replaces a server time that is smaller by a second at most. So tokens grow without a counter per lock, survive a clock that
 * steps back, and keep growing when the stored value is lost. Tokens that are shared with Java are the next ones of
 * Redisson's counter of the lock instead, and SET leaves that without a time to live.
 *
 * When Redis refuses the time to live (a user without that permission), the hold is removed again: no hold may stay
 * without an end. It cannot be tried first, because after its first write Redis lets a script exceed its memory limit.
 *
 * KEYS[1] hold   KEYS[2] fence key of the hold's slot (only when ARGV[3] is not 0)
 * ARGV[1] owner  ARGV[2] lease in ms  ARGV[3] number of tokens to reserve, 0 for none, negative: of Redisson's counter.
 *         '<tokens>@<least token>' with the proposal of a quorum
 * ARGV[4] channel  ARGV[5] PUBLISH or SPUBLISH (only when reacquiring: to notify waiters that it ends sooner now)
 * ARGV[6] when a string counts as a hold
 * Reply: integer  remaining ms of the other hold, -1 for a hold without an end
 *        string   granted: the first token, '0' when none was asked for
 *                 't <remaining ms of the other hold> <kind of lock>': no lock of this library; see BLOCKER. Of a string
 *                 the kind is 'foreign'
 *        error    FENCE when the fence key, or the counter, holds no usable number
 */
export const EXCLUSIVE_ACQUIRE = `${TIME}
local left = redis.call('pttl', KEYS[1])
if left ~= -2 then
  if ${isForeign('ARGV[6]', 'KEYS[1]')} then
    return 't ' .. string.format('%.0f', left) .. ' ${FOREIGN_WORD}'
  end
  ${LEAVE}
  if redis.call('hexists', KEYS[1], ARGV[1]) == 0 or is_entered(KEYS[1]) then
    ${TAKEN}
    return taken(KEYS[1], left)
  end
end
${TAKE}`;

/**
 * Ends the owner's hold and notifies waiters.
 *
 * Algorithm: announce, then delete. The announcement comes first because it can be refused (a missing permission), and
 * subscribers get it only after the script. Neither needs memory, so it works at OOM. A hold that stays for a while
 * gets just that time to live instead.
 *
 * KEYS[1] hold
 * ARGV[1] owner  ARGV[2] channel  ARGV[3] PUBLISH or SPUBLISH
 * ARGV[4] for how many more ms the hold stays (only when it stays)
 * Reply: integer  number of notified subscribers, -1 when the owner did not hold it; also -1 for another type of value,
 *                 which stays
 *        string   'entered': a read-write lock was in it, too, and only the owner's part has ended
 */
export const EXCLUSIVE_RELEASE = `${LEAVE}
local held = redis.pcall('hexists', KEYS[1], ARGV[1])
if held ~= 1 then
  if held == 0 or string.find(held.err, 'WRONGTYPE', 1, true) then return -1 end
  return held
end
local receivers = redis.call(ARGV[3], ARGV[2], '0')
if is_entered(KEYS[1]) then
  leave(KEYS[1], ARGV[1])
  return 'entered'
end
if ARGV[4] then
  redis.call('pexpire', KEYS[1], ARGV[4])
else
  redis.call('del', KEYS[1])
end
return receivers
`;

/**
 * Extends many holds.
 *
 * Algorithm: for each key by itself, if the owner's field is there, raise the time to live to the lease. Never lower
 * it, and never create anything. A key that fails does not affect the others.
 *
 * KEYS[i]     hold
 * ARGV[2i-1]  owner  ARGV[2i] lease in ms
 * Reply: list, for each key: integer: remaining ms, -1 when lost; 'entered' when lost because a read-write lock has
 *        entered it: the owner's part of it ends, and the rest stays; or another string: the error
 */
export const EXCLUSIVE_EXTEND = `${LEAVE}
local replies = {}
for i = 1, #KEYS do
  local held = redis.pcall('hexists', KEYS[i], ARGV[2 * i - 1])
  if type(held) == 'table' then
    replies[i] = held.err
  elseif held == 0 then
    replies[i] = -1
  elseif is_entered(KEYS[i]) then
    leave(KEYS[i], ARGV[2 * i - 1])
    replies[i] = 'entered'
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

/** Rejects a read-write lock, which has a field "mode" beside its owners, and every value that is not a hash. */
export const NOT_READ_WRITE = `if redis.call('hexists', KEYS[1], 'mode') == 1 then
  return redis.error_reply('WRONGTYPE the value there is a read-write lock')
end`;

/**
 * Ends whatever hold is there, and notifies waiters.
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
${NOT_READ_WRITE}
redis.call(ARGV[2], ARGV[1], '0')
return redis.call('del', KEYS[1])
`;

/** Maximum number of listed holders: a foreign hash may be of any size. */
const MAX_HOLDERS = 100;

/**
 * Lists the holders and the kind of the hold. Reads only a few fields, however large a foreign hash may be, and replies
 * with no more text than an owner and a count can have.
 *
 * Algorithm: each field is an owner, except "mode", which a read-write lock has beside its owners. A step of HSCAN may
 * return nothing, so there are several.
 *
 * KEYS[1] hold
 * ARGV[1] when a string counts as a hold: it has no holder, and its kind is 'foreign'
 * Reply: nil when free, else list: remaining ms (-1 for a hold without an end); the kind, if it is no exclusive lock of
 *        this library, as in `BLOCKER`, else ''; then for each holder owner and hold count
 */
export const EXCLUSIVE_INSPECT = `${BLOCKER}
local left = redis.call('pttl', KEYS[1])
if left == -2 then
  return nil
end
if ${isForeign('ARGV[1]', 'KEYS[1]')} then return { left, '${FOREIGN_WORD}' } end
local reply, cursor = { left, '' }, '0'
for _ = 1, 10 do
  local step = redis.call('hscan', KEYS[1], cursor, 'count', ${MAX_HOLDERS})
  for i = 1, #step[2], 2 do
    if step[2][i] ~= 'mode' and #reply < 2 + 2 * ${MAX_HOLDERS} then
      reply[#reply + 1] = string.sub(step[2][i], 1, 256)
      reply[#reply + 1] = string.sub(step[2][i + 1], 1, 32)
    end
  end
  cursor = step[1]
  if cursor == '0' or #reply >= 2 + 2 * ${MAX_HOLDERS} then break end
end
reply[2] = blocker(KEYS[1]) or ''
return reply
`;
