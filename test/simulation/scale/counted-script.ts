/** Key of the number of entries that scripts have read. No lock has it. */
export const ENTRIES_KEY = 'scale:entries';
/** Command that counts them. No script of the library uses it. */
export const COUNTING_COMMAND = 'incrbyfloat';

/**
 * Lua that puts a function around `redis.call` and `redis.pcall`. It counts each element of a list, a hash or a sorted
 * set that a script reads, and each ticket of a wait queue. It is one line, so that errors name the lines of the script.
 */
const COUNTING = `local redis = (function(real)
local function read(reply, name, key, field, ...)
  if type(reply) == 'table' and reply.err then return 0 end
  if name == 'hget' then return string.match(field, '^%d+$') and 1 or 0 end
  if name == 'lindex' then return 1 end
  if name == 'lrange' then return #reply end
  if name == 'hgetall' then return #reply / 2 end
  if name ~= 'zrange' and name ~= 'zrangebyscore' then return 0 end
  for _, word in ipairs({ ... }) do if word == 'withscores' then return #reply / 2 end end
  return #reply
end
local function counting(call)
  return function(...)
    local reply = call(...)
    local entries = read(reply, ...)
    if entries > 0 then real.call('${COUNTING_COMMAND}', '${ENTRIES_KEY}', entries) end
    return reply
  end
end
return setmetatable({ call = counting(real.call), pcall = counting(real.pcall) }, { __index = real })
end)(redis) `.replaceAll('\n', ' ');

/** Returns the same script, which also counts the entries that it reads. */
export const counted = (source: string): string => COUNTING + source;
