import { describe, expect, it } from 'vitest';
import { QUEUE_ACQUIRE, QUEUE_RELEASE } from '../../../lib/stores/redis/kinds/exclusive/queue-scripts.js';
import { encode, RespReader, type RespValue } from './resp.js';
import { Valkey } from './valkey.js';

const KEYS = ['key', 'nest_redis_lock:fence:{7}', 'nest_redis_lock:queue:{key}'];
const CHANNEL = 'redisson_lock__channel:{key}';

/** A connection on which the test waits for each reply. */
const connect = (server: Valkey): ((...words: (string | number)[]) => RespValue) => {
  const reader = new RespReader();
  const replies: RespValue[] = [];
  const socket = server.connect((bytes) => replies.push(...reader.read(bytes)));
  return (...words) => {
    socket.send(encode(words));
    server.run();
    return replies.splice(0)[0]!;
  };
};

describe('a server that counts the subscribers of a channel wrong', () => {
  it('opens no yield window: a release grants the lock to the first entry', async () => {
    let wallMs = 1_000_000;
    const server = await Valkey.start({ wallMs: () => wallMs, monotonicMs: () => wallMs });
    const say = connect(server);
    const owner = (i: number): string => `0000000${i}-0000-8000-8000-000000000000:1`;
    const acquire = (i: number): RespValue =>
      say('eval', QUEUE_ACQUIRE, 3, ...KEYS, owner(i), 30_000, 1, '5000 10000 1 0');
    // While its table grows, this build counts millions of subscribers.
    let count = 0;
    for (let i = 0; i < 64 && count < 1_000_000; i++) {
      connect(server)('subscribe', CHANNEL);
      count = Number((say('pubsub', 'numsub', CHANNEL) as RespValue[])[1]);
    }
    expect(count, 'the server counts right, so this test shows nothing').toBeGreaterThan(1_000_000);

    connect(server)('subscribe', `nest_redis_lock:grant:${owner(2).split(':')[0]}`);
    acquire(1);
    acquire(2);
    wallMs += 100;
    expect(say('eval', QUEUE_RELEASE, 3, ...KEYS, owner(1), 'PUBLISH', 0)).toBe(0);
    expect(say('hkeys', 'key')).toEqual([owner(2)]);
  });
});
