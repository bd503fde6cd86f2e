import type { Holder } from 'nest-redis-lock';
import type { Redis } from 'ioredis';

/** Foreign data in place of the hold of a lock. */
export interface ForeignHash {
  plant(redis: Redis, name: string): Promise<unknown>;
  /** What inspect() has to make of it. */
  readonly holders: readonly Partial<Holder>[];
}

/** 2^53 ms, which is 285,000 years: beyond it JavaScript cannot count. */
export const BEYOND_COUNTING_MS = 9_007_199_254_740_992;
/** As far away as Redis lets a key end. */
const FARTHEST_MS = '9223370000000000000';

/** Adds that many owners to a hash; a multiple of a thousand. */
export const addOwners = (redis: Redis, name: string, count: number): Promise<unknown> =>
  redis.eval(
    `for from = 1, ARGV[1], 1000 do
      local pairs = {}
      for i = from, from + 999 do
        pairs[#pairs + 1] = 'crowd:' .. i
        pairs[#pairs + 1] = '1'
      end
      redis.call('hset', KEYS[1], unpack(pairs))
    end`,
    1,
    name,
    count,
  );

/** An invalid count: the holder counts as entered once. */
const counting = (count: string | Buffer): ForeignHash => ({
  plant: (redis, name) => redis.multi().hset(name, 'somebody:1', count).pexpire(name, 60_000).exec(),
  holders: [{ owner: 'somebody:1', count: 1 }],
});

const ending = (ms: number | string): ForeignHash => ({
  plant: (redis, name) => redis.multi().hset(name, 'somebody:1', '1').call('pexpire', name, ms).exec(),
  holders: [{ owner: 'somebody:1', count: 1 }],
});

const fields = (
  pairs: readonly (string | Buffer)[],
  ...holders: readonly Partial<Holder>[]
): ForeignHash => ({
  plant: (redis, name) =>
    redis.multi().hset(name, ...pairs).pexpire(name, 60_000).exec(), // prettier-ignore
  holders: holders.length === 0 ? [{}] : holders,
});

/**
 * Hashes with anything in them. Redisson keeps all its locks in hashes, with other fields for other kinds of lock, so
 * the name counts as held, whatever is in its hash.
 */
export const FOREIGN_HASHES: Readonly<Record<string, ForeignHash>> = {
  'a hold of a Java service, entered three times': {
    plant: (redis, name) =>
      redis.multi().hset(name, '5f2f1c2e-8a52-4bb4-9d3c-0a6f0b1d2c3e:47', '3').pexpire(name, 30_000).exec(),
    holders: [{ owner: '5f2f1c2e-8a52-4bb4-9d3c-0a6f0b1d2c3e:47', count: 3 }],
  },
  'a write lock of a Java service': fields(['mode', 'write', '5f2f1c2e:47:write', '2'], {
    owner: '5f2f1c2e:47',
    count: 2,
  }),
  'a read lock of a Java service': fields(
    ['mode', 'read', '5f2f1c2e:47', '1', '5f2f1c2e:48', '2'],
    { owner: '5f2f1c2e:47', count: 1 },
    { owner: '5f2f1c2e:48', count: 2 },
  ),
  'a read-write lock that names no owner': fields(['mode', 'write'], { owner: '', count: 1 }),
  'a count that is text': counting('three'),
  'a count that is Lua': counting(`return redis.call('flushall')`),
  'a count that is nothing': counting(''),
  'a count that is zero': counting('0'),
  'a count that is binary': counting(Buffer.from([0, 255, 13, 10, 128])),
  'a count below zero': counting('-1'),
  'half a count': counting('0.5'),
  'a count of 1e308': counting('1e308'),
  'a count beyond 64 bits': counting('9223372036854775808'),
  'a count of 400 digits': counting('9'.repeat(400)),
  'several owners': fields(['one:1', '1', 'two:2', '2', 'three:3', '3'], { owner: 'one:1', count: 1 }),
  'owners that are hostile': fields([
    "']]..redis.call('flushall')--",
    '1',
    Buffer.from([0, 13, 10, 255]),
    '1',
    '',
    '',
  ]),
  'a field of eight megabytes': fields(['x'.repeat(8_000_000), 'y'.repeat(8_000_000)], { count: 1 }),
  'a million owners': {
    plant: (redis, name) => addOwners(redis, name, 1_000_000),
    holders: [{ count: 1, remainingMs: Infinity }],
  },
  'no end': {
    plant: (redis, name) => redis.hset(name, 'somebody:1', '1'),
    holders: [{ owner: 'somebody:1', count: 1, remainingMs: Infinity }],
  },
  'an end in 2^53 ms': ending(BEYOND_COUNTING_MS),
  'an end as far away as there is': ending(FARTHEST_MS),
};

/** What is no hash. Strings, lists and plain sets are in test/integration/store-refusals.spec.ts. */
export const OTHER_TYPES: Readonly<Record<string, (redis: Redis, name: string) => Promise<unknown>>> = {
  'a sorted set': (redis, name) => redis.zadd(name, 1, 'somebody:1'),
  'a stream': (redis, name) => redis.xadd(name, '*', 'somebody:1', '1'),
  'a HyperLogLog': (redis, name) => redis.pfadd(name, 'somebody:1'),
  'a place on the map': (redis, name) => redis.geoadd(name, 13.4, 52.5, 'somebody:1'),
  'a bitmap of 8 MB': (redis, name) => redis.setbit(name, 64_000_000, 1),
  'an empty string': (redis, name) => redis.set(name, ''),
};
