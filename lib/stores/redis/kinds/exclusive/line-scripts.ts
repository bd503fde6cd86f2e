import { TIME } from '../../connection/script-batch.js';
import {
  BASICS,
  CHANNEL,
  HEADER,
  LINE,
  LISTENERS_MOMENT_MS,
  LONGEST_MOMENT_MS,
  MOST_OWED_MS,
  POLLERS_EVERY_MS,
  POLLERS_MOMENT_MS,
  REMEMBERED_MS,
  RULES,
} from './line-functions.js';
import { LEAVE, NOT_READ_WRITE, TAKE, TAKEN } from './scripts.js';

/**
 * The scripts of the exclusive lock where waiters stand in a line in Redis, and whoever ends a hold gives it to the
 * first of them that is alive. The hold itself is that of `scripts.ts`.
 *
 * The line of a lock is a hash beside its hold, there only while somebody waits or did a moment ago, and never
 * without a time to live:
 *
 *   n            the last ticket that was given
 *   h            the first ticket that may still be there
 *   g            when the lock was last left to those who only poll, in ms
 *   f            until when it is left to those who stand in no line, in ms; 0 when one in line has had it since
 *   s            since when it belongs to the line, in ms; in the future: others have had it for so much longer
 *   <ticket>     a place: '1 <alive until> <alive for> <first lease> <tokens> <deaf> <owner>'; the tokens are a negative
 *                number where they are those of Redisson's counter
 *   @<owner>     the owner's ticket
 *
 * Of a place of another version only the first three fields are known: it is never granted, and goes when it is dead.
 * Times are ms of the server's clock. A place is alive until its time; one whose time is farther away than it asked for
 * comes from another clock, and is passed over until it is kept again. A deaf place has nobody who hears a message: it
 * is granted without one. An owner stands in line once, and never again.
 *
 * A grant by message travels on the channel of the owner's process: 'grant <version> <hold> <owner> <first token>
 * <tokens> <first lease> <places left>'.
 *
 * Those who stand in no line are Java clients and older versions, which listen to the announcement of a release, and
 * whoever only polls. More listeners than places show the first kind: then a release leaves the lock free for a moment, in
 * which nobody in line is granted. It lasts as long as the line had the lock before, so both have it for about the same
 * time, and it ends when nobody else listens any more. Pollers show nowhere: once a second there is a moment for them.
 */

/**
 * Takes the hold for an owner, or puts the owner in line, or tells what is left of the hold in the way.
 *
 * Algorithm: as `EXCLUSIVE_ACQUIRE`, but nobody overtakes: where somebody stands in line the hold, if it is free, goes to
 * the first of them, which may be the owner itself. An owner that does not wait is told that the key is taken.
 *
 * KEYS[1] hold  KEYS[2] fence key of the slot  KEYS[3] line
 * ARGV[1] owner  ARGV[2] lease in ms  ARGV[3] number of tokens, 0 for none, negative: of Redisson's counter
 * ARGV[4] '' when it does not wait, else '<for how long its place is alive in ms> <first lease of a grant by message in ms>
 *         <number of tokens of that> <1 when its process hears no messages yet, else 0>': few arguments, since most
 *         locks are free
 * ARGV[5] PUBLISH or SPUBLISH (only when re-arming: to tell who waits that it ends sooner now)
 * Reply: integer  what is left of the other hold in ms, -1 for one without an end
 *        string   granted: the first token, '0' when none was asked for
 *                 '<first token> <tokens> <places behind it>': the same where there is a line
 *                 'q <ticket> <places before it> <left of the hold in ms>': it stands in line; then what has the hold,
 *                 where that is no lock of this library: see IN_THE_WAY
 *                 't <left of the hold in ms> <what has it>': the same for one that does not wait
 *        error    FENCE when the fence key holds no usable number
 */
export const LINE_ACQUIRE = `${TIME}
local hold, fence, line, me = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
-- Most locks are free: those are taken before anything is made ready that only a line needs.
if redis.call('exists', hold, line) == 0 then
local left = -2
${TAKE}end
local left = redis.call('pttl', hold)
local mine = left ~= -2 and redis.call('hexists', hold, me) == 1
local waits = ARGV[4] ~= ''
-- Nor does it get one that Redisson's read-write lock has entered.
local entered = mine and redis.call('hlen', hold) > 1 and redis.call('hexists', hold, 'mode') == 1
if entered or (not mine and left ~= -2 and not waits) then
  ${TAKEN}
  return taken(hold, left)
end
${RULES}${LINE}
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
  -- First, since it needs no memory: the token of one that was granted without a message is not refused for the lack of it then.
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
  if type(token) ~= 'string' or redis.call('exists', line) == 0 then return token end
  local places = look(line).count
  return token .. ' ' .. whole(math.abs(ARGV[3])) .. ' ' .. whole(places)
end
local found = look(line)
local lined = found.size > 0
if lined then tidy(line, found) end
local rest = waits and rests(found, hold) or found.over and 0 or found.rest
if left == -2 and found.over and rest == 0 then
  local token = take()
  if found.till ~= 0 and type(token) == 'string' then
    resume(line, found)
    redis.pcall('pexpire', line, ${REMEMBERED_MS})
  end
  return token
end
local own = nil
if waits then
  local alive, first, tokens, deaf = string.match(ARGV[4], '^(%d+) (%d+) (%-?%d+) (%d)$')
  local is_new = not lined or (found.over and found.till == 0)
  local ticket = is_new and 1 or found.last + 1
  local name = whole(ticket)
  local text = table.concat({ '1', whole(now + alive), alive, first, tokens, deaf, me }, ' ')
  local stands
  if is_new then
    stands = redis.pcall('hset', line, 'n', name, 'h', 1, 'g', whole(now), 'f', 0, 's', whole(now), name, text, '@' .. me, name)
  else
    stands = redis.pcall('hset', line, 'n', name, name, text, '@' .. me, name)
  end
  if refused(stands) then return stands end
  if redis.call('pttl', line) < tonumber(alive) then
    local armed = redis.pcall('pexpire', line, alive)
    if refused(armed) then
      redis.call('del', line)
      return armed
    end
  end
  own = { ticket = ticket, text = text, lease = first, tokens = tonumber(tokens), deaf = deaf == '1', owner = me }
  found.count = found.count + 1
end
local by
if left ~= -2 then left, by = look_again_in(found, left), in_the_way(hold)
elseif rest > 0 then left = rest
else
  local done, given = pcall(give, hold, fence, line, found, own)
  if not done then
    -- What is dead goes with the next look at the line, also where this user may not take it off.
    if own and refused(redis.pcall('hdel', line, whole(own.ticket), '@' .. me)) then
      redis.call('hset', line, whole(own.ticket), '1 0 0 0 0 0 ' .. me)
    end
    return redis.error_reply(text_of(given))
  end
  if given and given.owner == me then
    redis.call('pexpire', hold, ARGV[2])
    return whole(given.token) .. ' ' .. whole(given.count) .. ' ' .. whole(given.left)
  end
  left = given and tonumber(given.lease) or 0
end
if not waits then return left end
return 'q ' .. whole(own.ticket) .. ' ' .. whole(found.count - 1) .. ' ' .. standing(left, by)
`;

/**
 * Ends the owner's hold and gives it to the first in line that is alive; takes an owner that still stands in line off it.
 *
 * Algorithm: all that can be refused is looked at before the hold is deleted; where something of it is in doubt, the hold
 * is announced as free and deleted, as `EXCLUSIVE_RELEASE` does it. So it is, too, when it is to be left to those who
 * stand in no line. Then the waiters in line hear the announcement, and the first of them ask when that moment is over.
 * Works when the memory is full.
 *
 * Of a hold that Redisson's read-write lock has entered only the owner's part ends. Where
 * nobody stands in line, a hold of one field is not looked at twice: if it is somebody else's, nothing is taken off, and all that
 * comes of it is an announcement for nothing.
 *
 * KEYS[1] hold  KEYS[2] fence key of the slot  KEYS[3] line
 * ARGV[1] owner  ARGV[2] PUBLISH or SPUBLISH, for the announcement  ARGV[3] 1 when its process hears that, else 0
 * ARGV[4] for how many more ms the hold stays (only when it shall)
 * Reply: integer  0 when it was held, 1 when it stood in line, -1 when neither
 *        string   'entered': it was held, and a read-write lock was in it, too
 */
export const LINE_RELEASE = `
local hold, fence, line, me = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local lined = redis.pcall('exists', line) == 1
local stays, own_ear = ARGV[4], tonumber(ARGV[3])
local held = redis.pcall('hlen', hold)
local is_more = type(held) == 'number' and held > 1
if held ~= 0 and (lined or stays or held ~= 1) then
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
  local told = redis.call(ARGV[2], ${CHANNEL}, '0')
  if held ~= 1 then return 1 end
  if stays then redis.call('pexpire', hold, stays)
  elseif is_more then redis.call('del', hold)
  elseif redis.call('hdel', hold, me) == 0 and not lined then return -1, 0 end
  return 0, told
end
local reply, told
if held == 1 and not lined then
  reply, told = plain()
  if told == 0 or told == own_ear or stays then return reply end
end
${BASICS}
local is_foreign = refused(held) and string.find(held.err, 'WRONGTYPE', 1, true)
if refused(held) and not is_foreign then return held end
if not lined and held ~= 1 then return -1 end
local timed = pcall(time)
if not lined then
  if not timed then return reply end
  ${LINE}
  if more_listen(hold, own_ear) then pcall(rest, line, ${LISTENERS_MOMENT_MS}) end
  return reply
end
local ticket = redis.pcall('hget', line, '@' .. me)
local stood = type(ticket) == 'string'
if held ~= 1 and not stood then return -1 end
if stood then redis.call('hdel', line, ticket, '@' .. me) end
if not timed or (held == 1 and stays) then return plain() end
if held ~= 1 and (is_foreign or redis.call('exists', hold) == 1) then
  if redis.call('hlen', line) <= ${HEADER} then redis.call('del', line) end
  return 1
end
${LINE}
local fine, found = pcall(look, line)
if not fine then return plain() end
-- The lock is free, and left to others: who waits looks when that is over.
if held ~= 1 and found.rest > 0 then return 1 end
local moment = 0
local listened = more_listen(hold, found.count + own_ear)
if listened then
  local owed = now - found.since
  -- More than that comes from another clock.
  if owed > 0 or owed < -${MOST_OWED_MS} then
    moment = math.max(${LISTENERS_MOMENT_MS}, math.min(owed, ${LONGEST_MOMENT_MS}))
  end
end
local polled = now - found.polled >= ${POLLERS_EVERY_MS} or now < found.polled
if polled then moment = ${POLLERS_MOMENT_MS} end
if #found.places > 0 and moment == 0 then
  -- First, since it needs no memory: what follows is not refused for the lack of it then.
  if held == 1 then redis.call('del', hold) end
  local done, given = pcall(function()
    tidy(line, found)
    return give(hold, fence, line, found, nil)
  end)
  if done and given then return held == 1 and 0 or 1 end
end
reply = plain()
if moment > 0 then
  pcall(rest, line, moment)
  if polled then pcall(redis.call, 'hset', line, 'g', whole(now)) end
elseif found.over and not listened then
  redis.call('del', line)
end
return reply
`;

/**
 * Keeps places in line alive, and gives a hold that is free to the first of its line.
 *
 * Algorithm: for each place on its own. A place that is there is touched; one that is not is never made again: its owner
 * has the hold meanwhile, or has nothing.
 *
 * KEYS[3i-2] hold  KEYS[3i-1] fence key of the slot  KEYS[3i] line
 * ARGV[3i-2] owner  ARGV[3i-1] for how long its place is alive in ms  ARGV[3i] 1 when its process hears no messages, else 0
 * Reply: list, for each: 'q <places before it> <left of the hold in ms>': it stands in line, and what has the hold, as
 *        LINE_ACQUIRE answers it; 'h <left in ms>': it has the hold; 'gone'; or 'error <its text>'
 */
export const LINE_KEEP = `${BASICS}${LINE}
local function keep(hold, fence, line, me, span, deaf)
  local ticket = redis.call('hget', line, '@' .. me)
  if not ticket then
    if redis.call('hexists', hold, me) == 1 then return 'h ' .. whole(redis.call('pttl', hold)) end
    return 'gone'
  end
  local text = redis.call('hget', line, ticket)
  local lease, tokens, owner = string.match(text, '^1 %d+ %d+ (%d+) (%-?%d+) %d (.+)$')
  -- First, since it needs no memory: what follows is not refused for the lack of it then.
  redis.call('pexpire', line, whole(math.max(redis.call('pttl', line), tonumber(span))))
  local kept = table.concat({ '1', whole(now + span), span, lease, tokens, deaf, owner }, ' ')
  redis.call('hset', line, ticket, kept)
  local left = redis.call('pttl', hold)
  local found = look(line)
  local rest = left == -2 and rests(found, hold) or 0
  local by
  if left ~= -2 then left, by = look_again_in(found, left), in_the_way(hold)
  elseif rest > 0 then left = rest
  else
    tidy(line, found)
    local own = { ticket = ticket, text = kept, lease = lease, tokens = tonumber(tokens), deaf = deaf == '1', owner = owner }
    local given = give(hold, fence, line, found, own)
    if given and given.owner == me then return 'h ' .. given.lease end
    left = given and tonumber(given.lease) or 0
  end
  local before = 0
  while place(found, before + 1) and place(found, before + 1).owner ~= me do before = before + 1 end
  return 'q ' .. whole(before) .. ' ' .. standing(left, by)
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
 * Ends whatever hold is there, tells who listens, and gives it to the first in line.
 *
 * KEYS[1] hold  KEYS[2] fence key of the slot  KEYS[3] line
 * ARGV[1] PUBLISH or SPUBLISH, for the announcement
 * Reply: integer  1 when there was a hold, else 0
 */
export const LINE_FORCE_UNLOCK = `${BASICS}${LINE}
local hold, fence, line = KEYS[1], KEYS[2], KEYS[3]
if redis.call('exists', hold) == 0 then return 0 end
-- Refuses another type of value before anything is told.
redis.call('hlen', hold)
${NOT_READ_WRITE}
redis.call(ARGV[1], channel_of(hold), '0')
redis.call('del', hold)
local fine, found = pcall(look, line)
-- Who waits in line has heard the announcement: it asks, should the hold not be given.
if fine and #found.places > 0 then
  pcall(function()
    tidy(line, found)
    give(hold, fence, line, found, nil)
  end)
end
return 1
`;

/**
 * Tells who waits in line, in order: the first 64 places that are alive.
 *
 * KEYS[1] line
 * Reply: list of owners
 */
export const LINE_INSPECT = `${BASICS}${LINE}
local found, owners = look(KEYS[1]), {}
while place(found, #owners + 1) do owners[#owners + 1] = string.sub(place(found, #owners + 1).owner, 1, 256) end
return owners
`;
