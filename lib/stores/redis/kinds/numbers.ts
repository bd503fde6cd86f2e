import { impossible } from '../connection/strict-replies.js';

/**
 * Beginning of the scripts of objects without a holder: reads the number under the key, or replies with an error for
 * another value. Redisson reads decimal digits only, so nothing else counts as a number.
 *
 * `touch` is a write that changes nothing and needs no memory. After it Redis does not refuse an INCRBY for lack of
 * memory, so a release works even when the memory is full. It leaves a key in its last ms (PTTL 0) alone: PERSIST would
 * keep the key without end, and PEXPIRE would delete it.
 */
export const NUMBERS = `
local function whole(n) return string.format('%.0f', n) end
local function counted(text)
  local n = #text <= 15 and string.match(text, '^-?%d+$') and tonumber(text)
  return text ~= '-0' and n and whole(n) == text and n
end
local text = redis.call('get', KEYS[1])
local number = text and counted(text)
if text and not number then
  return redis.error_reply('WRONGTYPE the value there is no number')
end
local function touch()
  local ttl = redis.call('pttl', KEYS[1])
  if ttl > 0 then redis.call('pexpire', KEYS[1], whole(ttl)) end
  if ttl == -1 then redis.call('persist', KEYS[1]) end
end
`;

export const readDone = (reply: unknown): boolean => {
  if (reply !== 0 && reply !== 1) throw impossible(reply);
  return reply === 1;
};

/** Reads the reply of a script that only confirms. */
export const readVoid = (reply: unknown): void => {
  if (reply !== 1) throw impossible(reply);
};

/** Reads a number that comes as text: a large one that Java has set would not be exact as an integer reply of Lua. */
export const readNumber = (reply: unknown): number => {
  const number = typeof reply === 'string' && /^-?\d{1,15}$/.test(reply) ? Number(reply) : NaN;
  if (!Number.isSafeInteger(number)) throw impossible(reply);
  return number;
};
