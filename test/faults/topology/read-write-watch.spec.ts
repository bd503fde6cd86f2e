import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  READ_ACQUIRE,
  READ_WRITE_DOWNGRADE,
  READ_WRITE_EXTEND,
  READ_WRITE_FORCE_UNLOCK,
  READ_WRITE_RELEASE,
  WRITE_ACQUIRE,
} from '../../../lib/stores/redis/kinds/read-write/scripts.js';
import type { EventOf, HistoryEvent } from '../../checker/history.js';
import { until } from '../../support/async.js';
import { RedisServer } from '../../support/servers/redis-server.js';
import { HoldWatch } from './hold-watch.js';
import { RedisMonitor, type MonitoredCommand } from './redis-monitor.js';

const HASH = 'lock:a';
const BEFORE_OWNERS = `{${HASH}}`;
const QUEUE = `nest_redis_lock:rw_queue:{${HASH}}`;
const INDEX = `nest_redis_lock:readers:{${HASH}}`;
const FENCE = 'nest_redis_lock:fence:{7}';
const CHANNEL = `redisson_rwlock:{${HASH}}`;
const LEASE_MS = 60_000;

let server: RedisServer;
let client: Redis;
let monitor: RedisMonitor;
/** What the server did, and nobody has heard of yet. */
const pending: MonitoredCommand[] = [];
let echoed = 0;

beforeAll(async () => {
  server = await RedisServer.start();
  client = server.adminClient();
  monitor = new RedisMonitor(server.port, (command) => void pending.push(command));
  await until(() => monitor.isAttached);
});
afterAll(async () => {
  monitor.close();
  client.disconnect();
  await server.stop();
});
beforeEach(() => client.flushall());

const timeoutOf = (owner: string): string => `${BEFORE_OWNERS}:${owner}:rwlock_timeout:1`;

const read = (owner: string, leaseMs = LEASE_MS): Promise<unknown> =>
  client.eval(
    READ_ACQUIRE,
    4,
    HASH,
    timeoutOf(owner),
    QUEUE,
    INDEX,
    owner,
    leaseMs,
    0,
    CHANNEL,
    'PUBLISH',
    BEFORE_OWNERS,
  );
const write = (owner: string, tokens: number, leaseMs = LEASE_MS): Promise<unknown> =>
  client.eval(
    WRITE_ACQUIRE,
    5,
    HASH,
    timeoutOf(owner),
    QUEUE,
    FENCE,
    INDEX,
    owner,
    leaseMs,
    0,
    CHANNEL,
    'PUBLISH',
    tokens,
  );
const release = (owner: string): Promise<unknown> =>
  client.eval(
    READ_WRITE_RELEASE, 5, HASH, timeoutOf(owner), QUEUE, `nest_redis_lock:queue:{${HASH}}`, INDEX,
    owner, CHANNEL, 'PUBLISH', BEFORE_OWNERS, 'channel', '',
  ); // prettier-ignore
const extend = (owner: string, leaseMs: number): Promise<unknown> =>
  client.eval(READ_WRITE_EXTEND, 3, HASH, timeoutOf(owner), INDEX, owner, leaseMs);

/** What the watch has seen by now of all that the server did since the last time, at one moment of its history. */
const watching = () => {
  const events: HistoryEvent[] = [];
  const given: EventOf<'hold'>[] = [];
  const watch = new HoldWatch('lock:', (event) => {
    events.push(event);
    if (event.type === 'hold') given.push(event);
  });
  pending.length = 0;
  const seenAt = async (at: number): Promise<unknown[]> => {
    const last = `asked ${++echoed}`;
    await client.echo(last);
    await until(() => pending.some(({ words }) => words[1] === last));
    for (const command of pending.splice(0)) watch.take(command, at);
    watch.settle(at);
    return events.splice(0).map((event) => {
      if (event.type === 'hold') return `${event.owner} ${event.mode}s until ${event.until}`;
      if (event.type === 'armed') return `${event.owner} has it until ${event.until}`;
      return event.type === 'free' ? `${event.owner} ${event.how} at ${event.at}` : event.type;
    });
  };
  return { given, watch, seenAt };
};

describe('the watch over a read-write lock', () => {
  it('sees each reader come, stay longer, and go', async () => {
    const { seenAt } = watching();
    await read('a:1');
    await read('b:1', 20);
    expect(await seenAt(0)).toEqual([`a:1 reads until ${LEASE_MS}`, 'b:1 reads until 20']);
    expect(await seenAt(20)).toEqual(['b:1 expired at 20']);
    await extend('a:1', LEASE_MS + 5);
    expect(await seenAt(30)).toEqual([`a:1 has it until ${LEASE_MS + 35}`]);
    await release('a:1');
    expect(await seenAt(40)).toEqual(['a:1 released at 40']);
  });

  it('sees a writer with its tokens, and those it asks for once more', async () => {
    const { seenAt, given } = watching();
    await write('a:1', 3);
    await write('a:1', 64);
    expect(await seenAt(0)).toEqual([`a:1 writes until ${LEASE_MS}`, `a:1 writes until ${LEASE_MS}`]);
    expect(given.map(({ token, lastToken }) => lastToken! - token! + 1)).toEqual([3, 64]);
    expect(given[1]!.lastToken).toBe(Number(await client.get(FENCE)));
    await extend('a:1', LEASE_MS + 5);
    await release('a:1');
    expect(await seenAt(0)).toEqual([`a:1 has it until ${LEASE_MS + 5}`, 'a:1 released at 0']);
  });

  it('sees the tokens of a writer that comes before the index of the last readers has expired', async () => {
    const { seenAt, given } = watching();
    await client.zadd(INDEX, Date.now(), 'b:1');
    await write('a:1', 3);
    await seenAt(0);
    expect(given.map(({ token, lastToken }) => lastToken! - token! + 1)).toEqual([3]);
  });

  it('sees a writer read on', async () => {
    const { seenAt } = watching();
    await write('a:1', 0);
    await client.eval(
      READ_WRITE_DOWNGRADE,
      3,
      HASH,
      timeoutOf('a:1'),
      INDEX,
      'a:1',
      LEASE_MS + 5,
      CHANNEL,
      'PUBLISH',
    );
    expect(await seenAt(0)).toEqual([`a:1 writes until ${LEASE_MS}`, `a:1 reads until ${LEASE_MS + 5}`]);
    await read('b:1');
    await release('a:1');
    expect(await seenAt(0)).toEqual([`b:1 reads until ${LEASE_MS}`, 'a:1 released at 0']);
  });

  it('sees nobody who was kept out', async () => {
    const { seenAt } = watching();
    await write('a:1', 0);
    await read('b:1');
    await write('c:1', 1);
    expect(await seenAt(0)).toEqual([`a:1 writes until ${LEASE_MS}`]);
  });

  it('sees that it was forced open', async () => {
    const { seenAt } = watching();
    await read('a:1');
    await read('b:1');
    await seenAt(0);
    await client.eval(READ_WRITE_FORCE_UNLOCK, 3, HASH, 'line', INDEX, CHANNEL, 'PUBLISH', 'channel');
    expect(await seenAt(5)).toEqual(['unprotected', 'a:1 forced at 5', 'b:1 forced at 5']);
  });

  it('has no lease come back that was over when the clock went back', async () => {
    const { seenAt, watch } = watching();
    await read('a:1', 20);
    await seenAt(0);
    watch.clockJumped(-100, 30);
    expect(await seenAt(30)).toEqual(['a:1 expired at 20']);
  });

  it('has leases end sooner when the clock goes forward, and nobody in a server that lost all', async () => {
    const { seenAt, watch } = watching();
    await read('a:1', LEASE_MS);
    await read('b:1', 2 * LEASE_MS);
    await seenAt(0);
    watch.clockJumped(LEASE_MS, 7);
    expect(await seenAt(7)).toEqual(['a:1 expired at 7']);
    await client.flushall();
    expect(await seenAt(8)).toEqual(['b:1 lost at 8']);
  });
});
