import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PERMIT_ACQUIRE } from '../../../lib/stores/redis/kinds/permit/scripts.js';
import type { HistoryEvent } from '../../checker/history.js';
import { until } from '../../support/async.js';
import { RedisServer } from '../../support/servers/redis-server.js';
import { HoldWatch } from './hold-watch.js';
import { RedisMonitor, type MonitoredCommand } from './redis-monitor.js';

const COUNTER = 'lock:a';
const KEYS = [COUNTER, `{${COUNTER}}:timeout`] as const;
const ONE = '1'.repeat(32);
const OTHER = '2'.repeat(32);
const THIRD = '3'.repeat(32);
const SHORT_MS = 10;
const LONG_MS = 60_000;
/** How far the server's clock is set back. */
const BACK_MS = 1_417;

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

const acquire = async (owner: string, leaseMs: number, limit = 1): Promise<boolean> => {
  const reply = await client.eval(PERMIT_ACQUIRE, 2, ...KEYS, owner, leaseMs, limit, 'channel', 'PUBLISH');
  return (reply as number[])[0] === 1;
};

/** All that the server did since the last time. */
const commands = async (): Promise<MonitoredCommand[]> => {
  const last = `asked ${++echoed}`;
  await client.echo(last);
  await until(() => pending.some(({ words }) => words[1] === last));
  return pending.splice(0);
};

/** The watch after a permit was given; the clock of the history begins with that. */
const watching = async (leaseMs: number, limit = 1) => {
  const events: HistoryEvent[] = [];
  const watch = new HoldWatch('lock:', (event) => void events.push(event));
  await commands();
  await acquire(ONE, leaseMs, limit);
  for (const command of await commands()) watch.take(command, 0);
  const [hold] = events;
  if (hold?.type !== 'hold') throw new Error('the watch has not seen the permit');
  return { events, watch, endsAt: hold.until! };
};

const seen = (events: readonly HistoryEvent[]): unknown[] =>
  events.map((event) => {
    if (event.type === 'free') return [event.at, event.owner, event.how];
    return 'owner' in event ? [event.at, event.owner, event.type] : event.type;
  });

describe('the watch over permits', () => {
  it('sees that a permit was over when another got it, whenever it hears of that', async () => {
    const { events, watch, endsAt } = await watching(SHORT_MS);
    await until(() => acquire(OTHER, LONG_MS));
    for (const command of await commands()) watch.take(command, endsAt + 100);
    expect(seen(events)).toEqual([
      [0, ONE, 'hold'],
      [endsAt, ONE, 'expired'],
      [endsAt + 100, OTHER, 'hold'],
    ]);
  });

  it('brings no permit back that was over when the clock was set back', async () => {
    const { events, watch, endsAt } = await watching(SHORT_MS);
    watch.clockJumped(-BACK_MS, endsAt + 100);
    expect(seen(events)).toEqual([
      [0, ONE, 'hold'],
      [endsAt, ONE, 'expired'],
    ]);
  });

  it('does not count on a permit that was about to end when the clock was set back', async () => {
    const { events, watch, endsAt } = await watching(LONG_MS);
    watch.clockJumped(-BACK_MS, endsAt - 1);
    expect(seen(events)).toEqual([
      [0, ONE, 'hold'],
      [endsAt - 1, ONE, 'expired'],
    ]);
  });

  it('lets a permit last longer when the clock is set back', async () => {
    const { events, watch, endsAt } = await watching(LONG_MS);
    watch.clockJumped(-BACK_MS, endsAt - 1_000);
    watch.settle(endsAt + BACK_MS - 1);
    expect(events).toHaveLength(1);
    watch.settle(endsAt + BACK_MS);
    expect(seen(events)).toEqual([
      [0, ONE, 'hold'],
      [endsAt + BACK_MS, ONE, 'expired'],
    ]);
  });

  it('believes the server that a permit was over, however its clock was set', async () => {
    // Keeps the set when the other permit in it has ended.
    await acquire(OTHER, LONG_MS, 2);
    const { events, watch, endsAt } = await watching(SHORT_MS, 2);
    watch.clockJumped(-BACK_MS, endsAt - 1_000);
    await until(() => acquire(THIRD, LONG_MS, 2));
    for (const command of await commands()) watch.take(command, endsAt);
    expect(seen(events)).toEqual([
      [0, ONE, 'hold'],
      [endsAt, ONE, 'expired'],
      [endsAt, THIRD, 'hold'],
    ]);
  });
});
