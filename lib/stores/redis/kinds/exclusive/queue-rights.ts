import { isNotPermitted, isReplyError, replyError } from '../../connection/redis-failure.js';
import type { Probe } from '../../connection/probe.js';
import { Script } from '../../connection/script.js';
import type { RedisKeys } from '../../redis-keys.js';

/**
 * Tries every right that the scripts of the wait queue use, and leaves nothing. If the user lacks one of them, the queue
 * is not used at all, because a script that fails half-way has done the first half.
 *
 * Algorithm: DEL first, since it needs no memory: nothing after it is refused for the lack of that. Each command for
 * itself, so that all that is missing can be named.
 *
 * KEYS[1] a key that no wait queue has
 * ARGV[1] a channel that no process has
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
try('pubsub|numsub', 'pubsub', 'numsub', ARGV[1])
try('channel', 'publish', ARGV[1], '')
try('time', 'time')
return refused
`;

export const PROBE = new Script(QUEUE_PROBE);

/**
 * Returns the script that finds out on a connection whether its Redis user has the rights for a wait queue. In a
 * cluster, it uses the slot of the name.
 */
export const queueProbe = (keys: RedisKeys, name?: string): Probe => ({
  script: PROBE,
  keys: [keys.queueProbe(name)],
  args: [keys.grantProbe(name)],
});

/** ACL rule of the channels on which processes are notified of grants. */
export const GRANT_CHANNELS_RULE = '&nest_redis_lock:grant:*';
const QUEUE_KEYS_RULE = '~nest_redis_lock:*';

/** What the probe calls the channel; its other names are those of commands. */
const CHANNEL = 'channel';

/**
 * Returns the ACL rules that the user lacks, from the reply or the error of the probe. Empty when the user lacks none,
 * or when the reply says nothing about rights.
 */
export const missingRules = (probed: unknown): readonly string[] => {
  // The script as a whole is refused for the key that it names.
  if (isReplyError(probed)) return isNotPermitted(probed) ? [QUEUE_KEYS_RULE] : [];
  if (!Array.isArray(probed)) return [];
  return probed.flatMap((one: unknown) => {
    const [, name, error] = typeof one === 'string' ? (/^(\S+) (.*)$/s.exec(one) ?? []) : [];
    if (name === undefined || !isNotPermitted(replyError(error ?? ''))) return [];
    return name === CHANNEL ? [GRANT_CHANNELS_RULE] : [`+${name}`];
  });
};

/** Returns the warning about a user that lacks these rules. */
export const withoutQueue = (missing: readonly string[]): string =>
  `The Redis user of the locks may not use a wait queue: it lacks ${missing.join(' ')}. Locks exclude as ` +
  'they do with it, but processes race for a lock that is given back: they get it in no order, and later. Give the ' +
  'user these ACL rules; they count from its next connection on.';
