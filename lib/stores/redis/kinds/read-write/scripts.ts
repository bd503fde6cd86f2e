import { counterOf, FOREIGN_WORD, isForeign } from '../exclusive/scripts.js';
import { orProposed, readTokens } from '../tokens-argument.js';
import { READ_WRITE_BASICS, READ_WRITE_ENTER, READ_WRITE_QUEUE } from './functions.js';
import { READER_INDEX } from './reader-index.js';

/**
 * The scripts of the read-write lock, in the layout of Redisson's RReadWriteLock. The lock is a hash:
 *
 *   mode             'read' or 'write'
 *   <owner>          a reader, and how often it has entered: with us always once
 *   <owner>:write    the writer, and the same
 *
 * For each time a reader has entered there is a key beside the hash, '<name>:<owner>:rwlock_timeout:<n>', which lives
 * as long as that lease. The hash lives as long as the longest of them, or as the writer's lease. A reader whose key
 * has gone has no hold any more, although its field stays for a while. An index tells which reader is the longest; see
 * `READER_INDEX`.
 *
 * The waiters of our processes, readers and writers alike, are in a wait queue beside the lock. It is a hash that
 * exists only while there are waiters, and never without a time to live:
 *
 *   last       the last ticket that was given
 *   <owner>    '<version> <ticket> <alive until> <alive for> <kind>', times in ms of the server's clock. Later versions
 *              may add words
 *
 * A writer enters when no owner has the lock and no entry is before it. A reader enters when no writer has the lock and
 * no writer is queued before it. So a stream of readers does not keep writers out, nor writers readers. No script lets
 * another owner in: each release is announced, and the waiters ask then, and from time to time. Java's clients ignore
 * the queue.
 *
 * Every script checks everything that it depends on, and announces, before its first write. It takes back what it has
 * written when a later command is refused.
 */

/**
 * Acquires the lock to read, enqueues the owner, or replies how long it has to wait. An owner that has the lock
 * reacquires it. If its hold then ends sooner than before, that is announced.
 *
 * KEYS[1] hash  KEYS[2] timeout key of the owner  KEYS[3] wait queue  KEYS[4] index
 * ARGV[1] owner  ARGV[2] lease in ms  ARGV[3] time to live of its queue entry in ms, 0: it does not wait
 * ARGV[4] channel  ARGV[5] PUBLISH or SPUBLISH  ARGV[6] name before the owner in timeout keys
 * ARGV[7] when a string counts as a hold
 * Reply: string   'granted'
 *                 'q <entries before it> <ms until it may retry>': queued. Then the kind of lock that has the name, if
 *                 it is another one: 'exclusive' or 'fair'; 'foreign' for a string
 *                 't <ms until it may retry> <kind of lock>': the same for an owner that does not wait
 *        integer  ms until it may retry, -1 when the blocking hold has no end
 */
export const READ_ACQUIRE: string = `${READ_WRITE_BASICS}${READER_INDEX}${READ_WRITE_QUEUE}${READ_WRITE_ENTER}
local hash, timeout, queue, index, me = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1]
local lease, span = tonumber(ARGV[2]), tonumber(ARGV[3])
local is_string = ${isForeign('ARGV[7]', 'hash')}
local has, ends
if not is_string then has, ends = held(hash, timeout, me) end
if has == 'read' then
  local latest = math.max(lease, others_left(hash, index, ARGV[6], me))
  if ends > lease then redis.call(ARGV[5], ARGV[4], '1') end
  redis.call('pexpire', timeout, ARGV[2])
  redis.call('pexpire', hash, whole(latest))
  note(index, me, lease)
  return 'granted'
end
local found = read_queue(queue, me)
local wait, count, left, other = must_wait(hash, 'read', found, me, is_string)
if wait == 0 then
  local failed = enter(hash, timeout, index, 'read', me, ARGV[2], left)
  if failed then return failed end
  leave(queue, found, me)
  return 'granted'
end
if span == 0 then return taken_reply(wait, other) end
local armed = enqueue(queue, found, me, 'read', span)
if refused(armed) then return armed end
return queued_reply(count, wait, other)
`;

/**
 * Acquires the lock to write, as `READ_ACQUIRE` does to read. Tokens are as of the exclusive lock: the larger one of
 * the last token plus one, and the server's time in µs. A proposal of a quorum replaces that time, as there. Or they are
 * the next ones of Redisson's counter of the name.
 *
 * KEYS[1] hash  KEYS[2] timeout key of the owner  KEYS[3] wait queue  KEYS[4] fence key of the slot
 * KEYS[5] index of readers
 * ARGV[1] owner  ARGV[2] lease in ms  ARGV[3] time to live of its queue entry in ms, 0: it does not wait
 * ARGV[4] channel  ARGV[5] PUBLISH or SPUBLISH
 * ARGV[6] number of tokens, 0 for none, negative: of Redisson's counter. '<tokens>@<least token>' with a proposal
 * ARGV[7] when a string counts as a hold
 * Reply: string   '<first token>': granted, '0' when none was asked for
 *                 'q …' and 't …': as of `READ_ACQUIRE`
 *        integer  ms until it may retry, -1 when the blocking hold has no end
 *        error    FENCE when the fence key, or the counter, holds no usable number
 */
export const WRITE_ACQUIRE: string = `${READ_WRITE_BASICS}${READER_INDEX}${READ_WRITE_QUEUE}${READ_WRITE_ENTER}
local hash, timeout, queue, fence, index, me = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], ARGV[1]
local lease, span = tonumber(ARGV[2]), tonumber(ARGV[3])
${readTokens('ARGV[6]')}
local is_string = ${isForeign('ARGV[7]', 'hash')}
local has, ends
if not is_string then has, ends = held(hash, timeout, me) end
local found, wait, count, left, other
if has ~= 'write' then
  found = read_queue(queue, me)
  wait, count, left, other = must_wait(hash, 'write', found, me, is_string)
  if wait ~= 0 then
    if span == 0 then return taken_reply(wait, other) end
    local armed = enqueue(queue, found, me, 'write', span)
    if refused(armed) then return armed end
    return queued_reply(count, wait, other)
  end
end
local token = 0
if block ~= 0 then
  token = clock[1] * 1000000 + clock[2]
  ${orProposed('token')}
  if block < 0 then block, token, fence = -block, 1, ${counterOf('hash')} end
  local stored = redis.call('get', fence)
  if stored then
    local last = string.match(stored, '^%d+$') and #stored <= 16 and tonumber(stored)
    if not last or last + block >= 9007199254740992 then
      return redis.error_reply('FENCE ' .. fence .. ' holds no usable fencing token')
    end
    if last >= token then token = last + 1 end
  end
end
if has == 'write' and ends > lease then redis.call(ARGV[5], ARGV[4], '1') end
if block > 0 then redis.call('set', fence, whole(token + block - 1)) end
if has == 'write' then
  redis.call('pexpire', hash, ARGV[2])
else
  local failed = enter(hash, timeout, index, 'write', me, ARGV[2], left)
  if failed then return failed end
  leave(queue, found, me)
end
return whole(token)
`;

/**
 * Refreshes queue entries, and lets in each owner that nothing blocks any more. Such a hold has the provisional lease
 * and no tokens, because its process asks again before it goes on. An entry that fails does not affect the others, and
 * a missing entry is never made again.
 *
 * KEYS[4i-3] hash  KEYS[4i-2] timeout key of the owner  KEYS[4i-1] wait queue  KEYS[4i] index of readers
 * ARGV[4i-3] owner  ARGV[4i-2] 'read' or 'write'  ARGV[4i-1] time to live of the entry in ms
 * ARGV[4i] provisional lease in ms
 * ARGV[#KEYS+1] when a string counts as a hold
 * Reply: list, for each: 'q …', as of `READ_ACQUIRE`: queued; 'h': it has the lock; 'gone'; or 'error <its text>'
 */
export const READ_WRITE_KEEP: string = `${READ_WRITE_BASICS}${READER_INDEX}${READ_WRITE_QUEUE}${READ_WRITE_ENTER}
local function keep(hash, timeout, queue, index, me, kind, span, lease)
  local found = read_queue(queue, me)
  local is_string = ${isForeign('ARGV[#KEYS + 1]', 'hash')}
  if not found.mine and is_string then return 'gone' end
  if not found.mine then return held(hash, timeout, me) and 'h' or 'gone' end
  local armed = enqueue(queue, found, me, kind, tonumber(span))
  if refused(armed) then error(armed.err, 0) end
  local wait, count, left, other = must_wait(hash, kind, found, me, is_string)
  if wait ~= 0 then return queued_reply(count, wait, other) end
  local failed = enter(hash, timeout, index, kind, me, lease, left)
  if failed then error(failed.err, 0) end
  leave(queue, found, me)
  return 'h'
end
local replies = {}
for i = 1, #KEYS / 4 do
  local done, reply = pcall(keep, KEYS[4 * i - 3], KEYS[4 * i - 2], KEYS[4 * i - 1], KEYS[4 * i],
    ARGV[4 * i - 3], ARGV[4 * i - 2], ARGV[4 * i - 1], ARGV[4 * i])
  if done then replies[i] = reply
  else replies[i] = 'error ' .. (type(reply) == 'table' and reply.err or tostring(reply)) end
end
return replies
`;

/**
 * Ends the owner's hold, of either kind, and takes the owner out of the wait queue.
 *
 * Algorithm: the hash lives on as long as the longest hold of the remaining readers, and goes with the last one. The
 * cost does not depend on the number of readers, unless the hash has fields that the index lacks.
 *
 * Waiters are notified when the lock is free, and when an entry with others behind it has gone. A reader sends '0',
 * which wakes one waiter of each JVM. Every other case sends '1', which wakes all. Queued waiters of plain locks of the
 * same name are notified, too. Works when the memory is full.
 *
 * KEYS[1] hash  KEYS[2] timeout key of the owner  KEYS[3] wait queue  KEYS[4] wait queue of the plain lock
 * KEYS[5] index of readers
 * ARGV[1] owner  ARGV[2] channel  ARGV[3] PUBLISH or SPUBLISH  ARGV[4] name before the owner in timeout keys
 * ARGV[5] channel of the plain lock  ARGV[6] for how many more ms the hold stays, '' for none
 * Reply: integer  1 when it was held, 0 when it was queued, -1 when neither
 */
export const READ_WRITE_RELEASE: string = `${READ_WRITE_BASICS}${READER_INDEX}${READ_WRITE_QUEUE}
local hash, timeout, queue, index, me = KEYS[1], KEYS[2], KEYS[3], KEYS[5], ARGV[1]
local there = redis.pcall('hexists', hash, 'mode')
if refused(there) and not foreign(there) then return there end
local has, found
if there == 1 then has = held(hash, timeout, me) end
local is_queued = redis.pcall('hexists', queue, me) == 1
if is_queued then found = read_queue(queue, me) end
local function leave_readers()
  redis.call('zrem', index, me)
  redis.call('hdel', hash, me)
end
local function notify(payload)
  redis.call(ARGV[3], ARGV[2], payload)
  if redis.call('exists', KEYS[4]) == 1 then redis.call(ARGV[3], ARGV[5], '0') end
end
if not has then
  if is_queued then
    if found.size > 2 then redis.call(ARGV[3], ARGV[2], '1') end
    leave(queue, found, me)
  end
  -- An expired hold of the owner: as the only field it would keep writers out.
  if there == 1 and redis.call('hexists', hash, me) == 1 then
    if redis.call('hget', hash, 'mode') == 'read' and others_left(hash, index, ARGV[4], me) == 0 then
      notify('0')
      redis.call('del', hash, index)
    else
      leave_readers()
    end
  end
  -- Key of a hold that was forced open.
  redis.pcall('del', timeout)
  return is_queued and 0 or -1
end
local others = others_left(hash, index, ARGV[4], me)
if ARGV[6] ~= '' then
  notify('1')
  if has == 'read' then
    redis.call('pexpire', timeout, ARGV[6])
    note(index, me, tonumber(ARGV[6]))
  end
  redis.call('pexpire', hash, whole(math.max(others, tonumber(ARGV[6]))))
elseif has == 'write' and others > 0 then
  notify('1')
  redis.call('hdel', hash, me .. ':write')
  redis.call('hset', hash, 'mode', 'read')
  redis.call('pexpire', hash, whole(others))
elseif others > 0 then
  redis.call('del', timeout)
  leave_readers()
  if redis.call('hget', hash, 'mode') == 'read' then
    redis.call('pexpire', hash, whole(others))
    redis.call('pexpire', index, whole(others))
  end
elseif has == 'read' and redis.call('hget', hash, 'mode') ~= 'read' then
  redis.call('del', timeout)
  leave_readers()
else
  notify(has == 'read' and '0' or '1')
  redis.call('del', hash, index)
  if has == 'read' then redis.call('del', timeout) end
end
if is_queued then leave(queue, found, me) end
return 1
`;

/**
 * Extends many holds of either kind. It never shortens a hold, neither the owner's nor another reader's, and never
 * brings back an expired one. A hold that fails does not affect the others. Works when the memory is full.
 *
 * KEYS[3i-2]  hash   KEYS[3i-1] timeout key of the owner  KEYS[3i] index of readers
 * ARGV[2i-1]  owner  ARGV[2i] lease in ms
 * Reply: list, for each: integer: remaining ms, -1 when lost; or a string: the error
 */
export const READ_WRITE_EXTEND: string = `${READ_WRITE_BASICS}${READER_INDEX}
local function extend(hash, timeout, index, me, lease)
  local has, left = held(hash, timeout, me)
  if not has then
    -- Key of a hold that was forced open.
    redis.pcall('del', timeout)
    return -1
  end
  local armed = has == 'read' and raise(timeout, left, lease)
  if not refused(armed) then armed = raise(hash, redis.call('pttl', hash), has == 'read' and math.max(left, lease) or lease) end
  if refused(armed) then return armed.err end
  if has == 'read' then note(index, me, math.max(left, lease)) end
  return math.max(left, lease)
end
local replies = {}
for i = 1, #KEYS / 3 do
  local done, reply = pcall(extend, KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i], ARGV[2 * i - 1], tonumber(ARGV[2 * i]))
  if done then replies[i] = reply
  else replies[i] = type(reply) == 'table' and reply.err or tostring(reply) end
end
return replies
`;

/**
 * Turns the owner's write lock into a read lock, and notifies waiters: readers may enter now. When repeated, it replies
 * with the remaining time.
 *
 * KEYS[1] hash  KEYS[2] timeout key of the owner  KEYS[3] index of readers
 * ARGV[1] owner  ARGV[2] lease in ms  ARGV[3] channel  ARGV[4] PUBLISH or SPUBLISH
 * Reply: list of one: integer: remaining ms, -1 when the owner does not have the lock any more
 */
export const READ_WRITE_DOWNGRADE: string = `${READ_WRITE_BASICS}${READER_INDEX}
local hash, timeout, index, me = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local has, left = held(hash, timeout, me)
if not has then return { -1 } end
if has == 'read' then return { left } end
local lease = math.max(left, tonumber(ARGV[2]))
redis.call(ARGV[4], ARGV[3], '1')
redis.call('set', timeout, '1', 'px', whole(lease))
local done = note(index, me, lease)
if not refused(done) then done = redis.pcall('hset', hash, 'mode', 'read', me, 1) end
if not refused(done) then done = raise(hash, redis.call('pttl', hash), lease) end
if not refused(done) then done = redis.pcall('hdel', hash, me .. ':write') end
if refused(done) then
  redis.pcall('hset', hash, 'mode', 'write')
  redis.pcall('del', index)
  redis.call('del', timeout)
  return done
end
return { lease }
`;

const NO_LOCK = `redis.error_reply('WRONGTYPE the value there is no read-write lock')`;

/**
 * Ends all holds and notifies waiters. As with Redisson, the timeout keys of the readers expire: without a field they
 * mean nothing. A process that finds its hold lost deletes its own key.
 *
 * KEYS[1] hash  KEYS[2] wait queue of the plain lock  KEYS[3] index of readers
 * ARGV[1] channel  ARGV[2] PUBLISH or SPUBLISH  ARGV[3] channel of the plain lock
 * Reply: integer  1 when there was a hold, else 0
 *        error    WRONGTYPE when something else is there
 */
export const READ_WRITE_FORCE_UNLOCK: string = `
local hash = KEYS[1]
if redis.call('exists', hash) == 0 then return 0 end
if redis.call('hexists', hash, 'mode') == 0 then return ${NO_LOCK} end
redis.call(ARGV[2], ARGV[1], '1')
if redis.call('exists', KEYS[2]) == 1 then redis.call(ARGV[2], ARGV[3], '0') end
redis.call('del', hash, KEYS[3])
return 1
`;

/**
 * Lists the first 100 holders of the lock, and the waiters of our processes, in order. Reads only a few fields, however
 * large a foreign hash may be. Expired readers are listed only when there is no other holder: then the hash is what
 * blocks.
 *
 * KEYS[1] hash  KEYS[2] wait queue  KEYS[3] index of readers
 * ARGV[1] name before the owner in timeout keys
 * ARGV[2] when a string counts as a hold: it has one holder without a name, and its mode is 'foreign'
 * Reply: nil when free, or for a string without waiters; else list: mode, or the kind of the first waiter where there is
 *        no holder, list of holders (owner, hold count, remaining ms, -1 for a hold without an end), list of owners
 *        error    WRONGTYPE when something else is there
 */
export const READ_WRITE_INSPECT: string = `${READ_WRITE_BASICS}${READER_INDEX}${READ_WRITE_QUEUE}
local hash, index = KEYS[1], KEYS[3]
local left, waits = redis.call('pttl', hash), redis.call('exists', KEYS[2]) == 1
local is_string = left ~= -2 and ${isForeign('ARGV[2]', 'hash')}
if not waits and (left == -2 or is_string) then return nil end
local mode = is_string and '${FOREIGN_WORD}' or left == -2 and '' or redis.call('hget', hash, 'mode')
if not mode then return ${NO_LOCK} end
local holders, dead = {}, {}
local function add(list, owner, count, ms)
  if #list >= 300 then return end
  list[#list + 1] = string.sub(owner, 1, 256)
  list[#list + 1] = math.max(1, math.min(count, 9007199254740991))
  list[#list + 1] = ms
end
local cursor, seen, steps = '0', {}, is_string and 0 or 20
if mode == 'read' and covers(hash, index) then
  steps = 0
  local ends = redis.call('zrange', index, -100, -1, 'withscores')
  for i = 1, #ends, 2 do
    local ms = tonumber(ends[i + 1]) - now
    if ms > 0 then add(holders, ends[i], 1, ms) else add(dead, ends[i], 1, left) end
  end
end
for _ = 1, steps do
  local step = redis.call('hscan', hash, cursor, 'count', 10)
  for i = 1, math.min(#step[2], 400), 2 do
    local field = step[2][i]
    local count = counted(step[2][i + 1])
    local writer = string.match(field, '^(.*):write$')
    if seen[field] or field == 'mode' then
    elseif mode == 'write' then
      if writer then add(holders, writer, count or 1, left) end
    elseif count and not writer then
      local ms = left_of(ARGV[1], field, math.min(count, 100))
      if ms > 0 then add(holders, field, count, ms) else add(dead, field, count, left) end
    end
    seen[field] = true
  end
  cursor = step[1]
  if cursor == '0' then break end
end
if #holders == 0 then holders = dead end
if #holders == 0 and left ~= -2 then holders = { '', 1, left } end
local owners = {}
if not waits then return { string.sub(mode, 1, 16), holders, owners } end
local found = read_queue(KEYS[2], '')
table.sort(found.all, function(a, b) return a.ticket < b.ticket end)
if left == -2 then
  if #found.all == 0 then return nil end
  mode = found.all[1].kind
end
for i = 1, math.min(#found.all, 64) do owners[i] = string.sub(found.all[i].owner, 1, 256) end
return { string.sub(mode, 1, 16), holders, owners }
`;
