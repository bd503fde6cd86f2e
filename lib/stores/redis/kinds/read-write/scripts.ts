import { counterOf } from '../exclusive/scripts.js';
import { READ_WRITE_BASICS, READ_WRITE_ENTER, READ_WRITE_LINE } from './functions.js';
import { READER_INDEX } from './reader-index.js';

/**
 * The scripts of the read-write lock, in the layout of Redisson's RReadWriteLock. The lock is a hash:
 *
 *   mode             'read' or 'write'
 *   <owner>          a reader, and how often it has entered: with us always once
 *   <owner>:write    the writer, and the same
 *
 * and beside it a key for each time a reader has entered, '<name>:<owner>:rwlock_timeout:<n>', that lives as long as the
 * lease of that. The hash lives as long as the longest of them, or as the writer's lease. A reader whose key has gone has
 * no hold any more, although its field stays for a while. An index says which reader is the longest; see `READER_INDEX`.
 *
 * Who waits in our processes, readers and writers alike, stands in a line beside it: a hash, there only while somebody
 * waits, and never without a time to live:
 *
 *   n          the last ticket that was given
 *   <owner>    '<ticket> <alive until> <alive for> <kind>', times in ms of the server's clock
 *
 * A writer goes in when nobody has the lock and nobody stands before it; a reader when nobody writes and no writer stands
 * before it. So writers are not kept out by readers that go on coming, nor readers by writers. Nobody is let in by
 * somebody else: each release is announced, and who waits asks then, and from time to time. Java's clients do not look
 * at the line.
 *
 * Every script looks at all it depends on, and announces, before its first write, and takes back what it has written when
 * a later command is refused.
 */

/**
 * Takes the lock to read, or puts the owner in line, or tells for how long it has to wait. The owner's own hold is only
 * re-armed; should it end sooner than the one before, that is announced.
 *
 * KEYS[1] hash  KEYS[2] timeout key of the owner  KEYS[3] line  KEYS[4] index
 * ARGV[1] owner  ARGV[2] lease in ms  ARGV[3] for how long its place in line is alive in ms, 0: it does not wait
 * ARGV[4] channel  ARGV[5] PUBLISH or SPUBLISH  ARGV[6] name before the owner in timeout keys
 * Reply: string   'granted'
 *                 'q <places before it> <ms until it may look again>': it stands in line; then what has the name, where that
 *                 is another kind of lock: 'exclusive' or 'fair'
 *                 't <ms until it may look again> <what has the name>': the same for one that does not wait
 *        integer  ms until it may look again, -1 when there is no end to that
 */
export const READ_ACQUIRE: string = `${READ_WRITE_BASICS}${READER_INDEX}${READ_WRITE_LINE}${READ_WRITE_ENTER}
local hash, timeout, line, index, me = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1]
local lease, span = tonumber(ARGV[2]), tonumber(ARGV[3])
local has, ends = held(hash, timeout, me)
if has == 'read' then
  local latest = math.max(lease, others_left(hash, index, ARGV[6], me))
  if ends > lease then redis.call(ARGV[5], ARGV[4], '1') end
  redis.call('pexpire', timeout, ARGV[2])
  redis.call('pexpire', hash, whole(latest))
  note(index, me, lease)
  return 'granted'
end
local found = waiting(line, me)
local wait, count, left, other = entry(hash, 'read', found, me)
if wait == 0 then
  local failed = enter(hash, timeout, index, 'read', me, ARGV[2], left)
  if failed then return failed end
  leave(line, found, me)
  return 'granted'
end
if span == 0 then return kept_out(wait, other) end
local armed = stand(line, found, me, 'read', span)
if refused(armed) then return armed end
return in_line(count, wait, other)
`;

/**
 * Takes the lock to write, as \`READ_ACQUIRE\` does to read. Tokens are those of the exclusive lock: the larger one of
 * what is stored and one more, and the server's time in µs; or the next ones of Redisson's counter of the name.
 *
 * KEYS[1] hash  KEYS[2] timeout key of the owner  KEYS[3] line  KEYS[4] fence key of the slot
 * KEYS[5] index of readers
 * ARGV[1] owner  ARGV[2] lease in ms  ARGV[3] for how long its place in line is alive in ms, 0: it does not wait
 * ARGV[4] channel  ARGV[5] PUBLISH or SPUBLISH
 * ARGV[6] number of tokens, 0 for none, negative: of Redisson's counter
 * Reply: string   '<first token>': granted, '0' when none was asked for
 *                 'q …' and 't …': as `READ_ACQUIRE` answers them
 *        integer  ms until it may look again, -1 when there is no end to that
 *        error    FENCE when the fence key, or the counter, holds no usable number
 */
export const WRITE_ACQUIRE: string = `${READ_WRITE_BASICS}${READER_INDEX}${READ_WRITE_LINE}${READ_WRITE_ENTER}
local hash, timeout, line, fence, index, me = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], ARGV[1]
local lease, span, block = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[6])
local has, ends = held(hash, timeout, me)
local found, wait, count, left, other
if has ~= 'write' then
  found = waiting(line, me)
  wait, count, left, other = entry(hash, 'write', found, me)
  if wait ~= 0 then
    if span == 0 then return kept_out(wait, other) end
    local armed = stand(line, found, me, 'write', span)
    if refused(armed) then return armed end
    return in_line(count, wait, other)
  end
end
local token = 0
if block ~= 0 then
  token = clock[1] * 1000000 + clock[2]
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
  leave(line, found, me)
end
return whole(token)
`;

/**
 * Keeps places in line alive, and lets in whom nothing keeps out any more: for its first lease, and without tokens, since
 * its process asks again before it goes on. Each place on its own; one that is not there is never made again.
 *
 * KEYS[4i-3] hash  KEYS[4i-2] timeout key of the owner  KEYS[4i-1] line  KEYS[4i] index of readers
 * ARGV[4i-3] owner  ARGV[4i-2] 'read' or 'write'  ARGV[4i-1] for how long the place is alive in ms  ARGV[4i] first lease in ms
 * Reply: list, for each: 'q …', as `READ_ACQUIRE` answers it: it stands in line; 'h': it has the lock; 'gone'; or
 *        'error <its text>'
 */
export const READ_WRITE_KEEP: string = `${READ_WRITE_BASICS}${READER_INDEX}${READ_WRITE_LINE}${READ_WRITE_ENTER}
local function keep(hash, timeout, line, index, me, kind, span, lease)
  local found = waiting(line, me)
  if not found.mine then return held(hash, timeout, me) and 'h' or 'gone' end
  local armed = stand(line, found, me, kind, tonumber(span))
  if refused(armed) then error(armed.err, 0) end
  local wait, count, left, other = entry(hash, kind, found, me)
  if wait ~= 0 then return in_line(count, wait, other) end
  local failed = enter(hash, timeout, index, kind, me, lease, left)
  if failed then error(failed.err, 0) end
  leave(line, found, me)
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
 * Ends the owner's hold, of whichever kind, and takes it off the line.
 *
 * Algorithm: the hash lives on as long as the longest hold of the readers that are left, and goes with the last one. The
 * cost does not depend on the number of readers, unless the hash has fields that the index lacks. Who
 * waits is told when the lock is free, and when a place has gone that others stood behind: '0' from a reader, which wakes
 * one waiter of each JVM, and '1' else, which wakes all. Waiters of plain locks of the same name are told, too, if they
 * stand in line. Works when the memory is full.
 *
 * KEYS[1] hash  KEYS[2] timeout key of the owner  KEYS[3] line  KEYS[4] line of the plain lock
 * KEYS[5] index of readers
 * ARGV[1] owner  ARGV[2] channel  ARGV[3] PUBLISH or SPUBLISH  ARGV[4] name before the owner in timeout keys
 * ARGV[5] channel of the plain lock  ARGV[6] for how many more ms the hold stays, '' for none
 * Reply: integer  1 when it was held, 0 when it stood in line, -1 when neither
 */
export const READ_WRITE_RELEASE: string = `${READ_WRITE_BASICS}${READER_INDEX}${READ_WRITE_LINE}
local hash, timeout, line, index, me = KEYS[1], KEYS[2], KEYS[3], KEYS[5], ARGV[1]
local there = redis.pcall('hexists', hash, 'mode')
if refused(there) and not foreign(there) then return there end
local has, found
if there == 1 then has = held(hash, timeout, me) end
local lined = redis.pcall('hexists', line, me) == 1
if lined then found = waiting(line, me) end
local function leave_readers()
  redis.call('zrem', index, me)
  redis.call('hdel', hash, me)
end
local function tell(payload)
  redis.call(ARGV[3], ARGV[2], payload)
  if redis.call('exists', KEYS[4]) == 1 then redis.call(ARGV[3], ARGV[5], '0') end
end
if not has then
  if lined then
    if found.size > 2 then redis.call(ARGV[3], ARGV[2], '1') end
    leave(line, found, me)
  end
  -- What is left of a hold whose time is over; with nobody else there it would keep writers out.
  if there == 1 and redis.call('hexists', hash, me) == 1 then
    if redis.call('hget', hash, 'mode') == 'read' and others_left(hash, index, ARGV[4], me) == 0 then
      tell('0')
      redis.call('del', hash, index)
    else
      leave_readers()
    end
  end
  -- Of a hold that was forced open.
  redis.pcall('del', timeout)
  return lined and 0 or -1
end
local others = others_left(hash, index, ARGV[4], me)
if ARGV[6] ~= '' then
  tell('1')
  if has == 'read' then
    redis.call('pexpire', timeout, ARGV[6])
    note(index, me, tonumber(ARGV[6]))
  end
  redis.call('pexpire', hash, whole(math.max(others, tonumber(ARGV[6]))))
elseif has == 'write' and others > 0 then
  tell('1')
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
  tell(has == 'read' and '0' or '1')
  redis.call('del', hash, index)
  if has == 'read' then redis.call('del', timeout) end
end
if lined then leave(line, found, me) end
return 1
`;

/**
 * Lengthens many holds, each of whichever kind it is: each on its own, never shortens one, never brings one back whose
 * time is over, and never shortens what another reader has. Works when the memory is full.
 *
 * KEYS[3i-2]  hash   KEYS[3i-1] timeout key of the owner  KEYS[3i] index of readers
 * ARGV[2i-1]  owner  ARGV[2i] lease in ms
 * Reply: list, for each: integer what is left in ms, -1 when lost, or a string: the error
 */
export const READ_WRITE_EXTEND: string = `${READ_WRITE_BASICS}${READER_INDEX}
local function extend(hash, timeout, index, me, lease)
  local has, left = held(hash, timeout, me)
  if not has then
    -- Of a hold that was forced open.
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
 * Turns the owner's write lock into a read lock, and tells who waits: readers go in beside it. Asked again, it answers
 * what is left.
 *
 * KEYS[1] hash  KEYS[2] timeout key of the owner  KEYS[3] index of readers
 * ARGV[1] owner  ARGV[2] lease in ms  ARGV[3] channel  ARGV[4] PUBLISH or SPUBLISH
 * Reply: list of one: integer what is left in ms, -1 when the owner does not have the lock any more
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
 * Ends whatever holds are there, and wakes who waits. As with Redisson, the timeout keys of the readers expire: without a
 * field they mean nothing. A process that finds its hold lost deletes its own.
 *
 * KEYS[1] hash  KEYS[2] line of the plain lock  KEYS[3] index of readers
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
 * Tells who has the lock, the first 100, and who waits for it in our processes, in order. Looks at few fields only,
 * however large a foreign hash may be. A reader whose time is over is shown only where there is nobody else: then the
 * hash is what keeps others out.
 *
 * KEYS[1] hash  KEYS[2] line  KEYS[3] index of readers
 * ARGV[1] name before the owner in timeout keys
 * Reply: nil when free, else list: mode, list of holders (owner, hold count, time left in ms, -1 for one without an end),
 *        list of owners
 *        error    WRONGTYPE when something else is there
 */
export const READ_WRITE_INSPECT: string = `${READ_WRITE_BASICS}${READER_INDEX}${READ_WRITE_LINE}
local hash, index = KEYS[1], KEYS[3]
local left = redis.call('pttl', hash)
if left == -2 then return nil end
local mode = redis.call('hget', hash, 'mode')
if not mode then return ${NO_LOCK} end
local holders, dead = {}, {}
local function add(list, owner, count, ms)
  if #list >= 300 then return end
  list[#list + 1] = string.sub(owner, 1, 256)
  list[#list + 1] = math.max(1, math.min(count, 9007199254740991))
  list[#list + 1] = ms
end
local cursor, seen, steps = '0', {}, 20
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
if #holders == 0 then holders = { '', 1, left } end
local owners = {}
if redis.call('exists', KEYS[2]) == 0 then return { string.sub(mode, 1, 16), holders, owners } end
local found = waiting(KEYS[2], '')
table.sort(found.all, function(a, b) return a.ticket < b.ticket end)
for i = 1, math.min(#found.all, 64) do owners[i] = string.sub(found.all[i].owner, 1, 256) end
return { string.sub(mode, 1, 16), holders, owners }
`;
