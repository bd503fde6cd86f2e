import type { Redis } from 'ioredis';

/** Everything in a database by its name, both byte for byte, and whether it has an end. */
export type KeySpace = ReadonlyMap<string, string>;

const byteForByte = (bytes: Buffer | null): string => bytes?.toString('latin1') ?? '';

export const keySpaceOf = async (redis: Redis): Promise<KeySpace> => {
  const names = (await redis.keysBuffer('*')).sort((a, b) => a.compare(b));
  const found = await Promise.all(
    names.map(async (name) => {
      const [value, expiresAt] = await Promise.all([redis.dumpBuffer(name), redis.pexpiretime(name)]);
      return [byteForByte(name), `${expiresAt} ${byteForByte(value)}`] as const;
    }),
  );
  return new Map(found);
};

/** The names, byte for byte, of what differs in any way between two looks, but for fence keys. */
export const touchedBetween = (before: KeySpace, after: KeySpace): string[] =>
  [...new Set([...before.keys(), ...after.keys()])].filter(
    (name) => before.get(name) !== after.get(name) && !/^nest_redis_lock:fence:\{\d+\}$/.test(name),
  );

/** The name of a key's hold as it is compared here. */
export const rawName = (name: string): string => byteForByte(Buffer.from(name));

/** Fills a database with one thing of each type, under names that hostile keys may be after. */
export const plantBystanders = async (redis: Redis): Promise<void> => {
  await redis
    .multi()
    .set('order', 'a string')
    .set('lock', 'not a lock')
    .set('lock:', 'a lock without a name')
    .set('*', 'everything')
    .hset('user:1', 'name', 'Zoë')
    .hset('lock:order:2', 'somebody:1', '1')
    .rpush('queue', 'first', 'second')
    .sadd('tags', 'red', 'blue')
    .zadd('scores', 1, 'one', 2, 'two')
    .xadd('events', '1-1', 'what', 'started')
    .set('session', 'ends one day', 'PX', 3_600_000)
    .exec();
};
