import { isNotPermitted, isReplyError, replyError, RedisFailure } from '../../connection/redis-failure.js';
import type { OneOfServers } from '../../connection/redis-topology.js';
import { Script } from '../../connection/script.js';
import type { RedisKeys } from '../../redis-keys.js';

/**
 * Tries every right that the scripts of the wait queue use, and leaves nothing.
 *
 * Algorithm: DEL first, since it needs no memory: nothing after it is refused for the lack of that. Each command for
 * itself, so that all that is missing can be named.
 *
 * KEYS[1] a key that no wait queue has
 * ARGV[1] a channel that no process has  ARGV[2] PUBLISH or SPUBLISH
 * Reply: list of strings: the name of what was refused, and the error
 */
const QUEUE_PROBE = `
local refused = {}
local function try(name, command, ...)
  local reply = redis.pcall(command, ...)
  if type(reply) == 'table' and reply.err then refused[#refused + 1] = name .. ' ' .. reply.err end
end
local key = KEYS[1]
try('del', 'del', key)
if #refused > 0 then return refused end
try('set', 'set', key, '1', 'px', '1000')
try('get', 'get', key)
redis.call('del', key)
try('hset', 'hset', key, 'n', 1)
try('pexpire', 'pexpire', key, 1000)
try('pttl', 'pttl', key)
try('exists', 'exists', key)
try('hexists', 'hexists', key, 'n')
try('hget', 'hget', key, 'n')
try('hlen', 'hlen', key)
try('hdel', 'hdel', key, 'n')
redis.call('del', key)
local numsub = ARGV[2] == 'SPUBLISH' and 'shardnumsub' or 'numsub'
try('pubsub|' .. numsub, 'pubsub', numsub, ARGV[1])
try(string.lower(ARGV[2]), ARGV[2], ARGV[1], '')
try('time', 'time')
return refused
`;

const PROBE = new Script(QUEUE_PROBE);

const GRANT_CHANNELS_RULE = '&nest_redis_lock:grant:*';
const QUEUE_KEYS_RULE = '~nest_redis_lock:*';

/**
 * Resolves with the ACL rules that the Redis user lacks for the wait queue at a server. Empty when the user lacks none,
 * or when the server runs no scripts.
 */
export const missingRules = async (
  { connection, aKey }: OneOfServers,
  keys: RedisKeys,
  publish: string,
): Promise<readonly string[]> => {
  try {
    await connection.load(PROBE);
    return await connection.run(PROBE, [keys.queueProbe(aKey)], [keys.grantProbe(aKey), publish], rulesIn);
  } catch (failure) {
    if (!(failure instanceof RedisFailure) || !isReplyError(failure.cause)) throw failure;
    // The script as a whole is refused for the key that it names.
    return isNotPermitted(failure) && failure.cause.message.includes(' keys ') ? [QUEUE_KEYS_RULE] : [];
  }
};

const rulesIn = (reply: unknown): readonly string[] =>
  [reply].flat().flatMap((one) => {
    const [, name, error] = typeof one === 'string' ? (/^(\S+) (.*)$/s.exec(one) ?? []) : [];
    if (name === undefined || !isNotPermitted(replyError(error ?? ''))) return [];
    return name.endsWith('publish') && error?.includes('channel') ? [GRANT_CHANNELS_RULE] : [`+${name}`];
  });

/** Returns the text of the error that names the missing rules. */
export const lacksRules = (
  servers: readonly { readonly name: string | undefined; readonly missing: readonly string[] }[],
): string => {
  const rules = [...new Set(servers.flatMap(({ missing }) => missing))].join(' ');
  const names = servers.flatMap(({ name }) => name ?? []).join(', ');
  return (
    `The Redis user of the locks lacks these ACL rules${names && ` on ${names}`}: ${rules}. Without them it cannot use ` +
    'the wait queues of locks. Give the user these rules; docs/operations/permissions.md has all of them.'
  );
};
