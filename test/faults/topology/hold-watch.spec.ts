import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Script } from '../../../lib/stores/redis/connection/script.js';
import {
  QUEUE_ACQUIRE,
  QUEUE_FORCE_UNLOCK,
  QUEUE_KEEP,
  QUEUE_RELEASE,
} from '../../../lib/stores/redis/kinds/exclusive/queue-scripts.js';
import { BATCH_PARTS } from '../../../lib/stores/redis/kinds/any-kind.js';
import { batchOf, keysAndArgs } from '../../../lib/stores/redis/connection/script-batch.js';
import {
  EXCLUSIVE_ACQUIRE,
  EXCLUSIVE_FORCE_UNLOCK,
  EXCLUSIVE_RELEASE,
} from '../../../lib/stores/redis/kinds/exclusive/scripts.js';
import type { HistoryEvent } from '../../checker/history.js';
import { until } from '../../support/async.js';
import { RedisServer } from '../../support/servers/redis-server.js';
import { HoldWatch } from './hold-watch.js';
import { RedisMonitor } from './redis-monitor.js';

let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  client = server.adminClient();
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

const LEASE_MS = 60_000;
const CHANNEL = 'channel';

/** How the hold of a key ends, as the watch sees it, when a script is run on it. */
const endBy = async (script: (key: string) => Promise<unknown>): Promise<unknown> => {
  const key = 'lock:a';
  const events: HistoryEvent[] = [];
  const watch = new HoldWatch('lock:', (event) => void events.push(event));
  const monitor = new RedisMonitor(server.port, (command) => watch.take(command, 0));
  try {
    await until(() => monitor.isAttached);
    await client.eval(EXCLUSIVE_ACQUIRE, 1, key, 'me:1', LEASE_MS, 0);
    await script(key);
    await until(() => events.some(({ type }) => type === 'free'));
    return events.find((event) => event.type === 'free')?.how;
  } finally {
    monitor.close();
  }
};

describe('the watch over what a server carries out', () => {
  it('sees a release', async () => {
    const end = endBy((key) => client.eval(EXCLUSIVE_RELEASE, 1, key, 'me:1', CHANNEL, 'PUBLISH'));
    expect(await end).toBe('released');
  });

  it('sees that a hold was forced open, by the hash of the script or by all of it', async () => {
    const bySource = (key: string) => client.eval(EXCLUSIVE_FORCE_UNLOCK, 1, key, CHANNEL, 'PUBLISH');
    const { sha } = new Script(EXCLUSIVE_FORCE_UNLOCK);
    const byHash = (key: string) => client.evalsha(sha, 1, key, CHANNEL, 'PUBLISH');
    expect(await endBy(bySource)).toBe('forced');
    expect(await endBy(byHash)).toBe('forced');
  });
});

const GRANTS = 'nest_redis_lock:grant:';
const PROVISIONAL_MS = 10_000;

/** What the watch sees of lines, once so many holds were there. */
const watching = async (
  holds: number,
  act: (queue: WaitQueue) => Promise<unknown>,
): Promise<HistoryEvent[]> => {
  await client.flushall();
  const events: HistoryEvent[] = [];
  const watch = new HoldWatch('lock:', (event) => void events.push(event));
  const monitor = new RedisMonitor(server.port, (command) => watch.take(command, 0));
  try {
    await until(() => monitor.isAttached);
    await act(new WaitQueue());
    await until(() => {
      watch.settle(0);
      return events.filter(({ type }) => type === 'hold').length === holds;
    });
    return events;
  } finally {
    monitor.close();
  }
};

class WaitQueue {
  readonly key = 'lock:a';
  readonly keys = [this.key, 'nest_redis_lock:fence:{7}', `nest_redis_lock:queue:{${this.key}}`] as const;

  acquireArgs(owner: string, tokens: number, aliveMs = 5_000): (string | number)[] {
    return [owner, LEASE_MS, tokens, `${aliveMs} ${PROVISIONAL_MS} ${tokens} 0`];
  }

  releaseArgs(owner: string): (string | number)[] {
    return [owner, 'PUBLISH', 0];
  }

  acquire(owner: string, tokens: number): Promise<unknown> {
    return client.eval(QUEUE_ACQUIRE, 3, ...this.keys, ...this.acquireArgs(owner, tokens));
  }

  release(owner: string): Promise<unknown> {
    return client.eval(QUEUE_RELEASE, 3, ...this.keys, ...this.releaseArgs(owner));
  }

  keep(owner: string): Promise<unknown> {
    return client.eval(QUEUE_KEEP, 3, ...this.keys, owner, 5_000, 0);
  }

  force(): Promise<unknown> {
    return client.eval(QUEUE_FORCE_UNLOCK, 3, ...this.keys, 'PUBLISH');
  }
}

const seen = (events: readonly HistoryEvent[]): unknown[] =>
  events.map((event) => {
    if (event.type === 'free') return `${event.owner} ${event.how}`;
    if (event.type !== 'hold') return event.type;
    const { owner, token = 0, lastToken = -1, until: to = 0 } = event;
    return `${owner} has it for ${to} with ${lastToken - token + 1}`;
  });

describe('the watch over a line', () => {
  let subscriber: Redis;
  beforeAll(async () => {
    subscriber = client.duplicate();
    await subscriber.subscribe(`${GRANTS}b`, `${GRANTS}c`);
  });
  afterAll(() => subscriber.disconnect());

  it('sees who is granted by a release, with the tokens and the lease of its place', async () => {
    const events = await watching(3, async (queue) => {
      await queue.acquire('a:1', 1);
      await queue.acquire('b:1', 64);
      await queue.acquire('c:1', 7);
      await queue.release('a:1');
      await queue.force();
    });
    expect(seen(events)).toEqual([
      `a:1 has it for ${LEASE_MS} with 1`,
      'a:1 released',
      `b:1 has it for ${PROVISIONAL_MS} with 64`,
      'unprotected',
      'b:1 forced',
      `c:1 has it for ${PROVISIONAL_MS} with 7`,
    ]);
  });

  it('sees nothing of a grant that nobody hears, and who finds its turn when it keeps its place', async () => {
    const events = await watching(3, async (queue) => {
      await queue.acquire('a:1', 1);
      await queue.acquire('away:1', 5);
      await queue.acquire('b:1', 64);
      await queue.release('a:1');
      await queue.release('b:1');
      await queue.keep('away:1');
    });
    const [, ofB, ofAway] = events.filter((event) => event.type === 'hold');
    expect(ofB?.token).toBeLessThan(ofAway!.token!);
    expect(ofAway?.lastToken).toBe(Number(await client.get('nest_redis_lock:fence:{7}')));
    expect(seen(events)).toEqual([
      `a:1 has it for ${LEASE_MS} with 1`,
      'a:1 released',
      `b:1 has it for ${PROVISIONAL_MS} with 64`,
      'b:1 released',
      `away:1 has it for ${PROVISIONAL_MS} with 5`,
    ]);
  });

  it('sees the tokens of a holder that asks once more for its hold', async () => {
    const events = await watching(2, async (queue) => {
      await queue.acquire('a:1', 0);
      await queue.acquire('a:1', 5);
    });
    expect(seen(events)).toEqual([
      `a:1 has it for ${LEASE_MS} with 0`,
      'armed',
      `a:1 has it for ${LEASE_MS} with 5`,
    ]);
  });

  it('sees the same of requests that share one', async () => {
    const events = await watching(3, async (queue) => {
      const run = (letter: string, args: readonly (string | number)[]) => {
        const part = BATCH_PARTS.find((one) => one.letter === letter)!;
        return { part, keys: queue.keys, args };
      };
      const [keys, args] = keysAndArgs([
        run('A', queue.acquireArgs('a:1', 3)),
        run('A', queue.acquireArgs('b:1', 64)),
        run('R', queue.releaseArgs('a:1')),
        run('A', queue.acquireArgs('c:1', 2)),
        run('R', queue.releaseArgs('b:1')),
      ]);
      await client.eval(batchOf(BATCH_PARTS).source, keys.length, ...keys, ...args);
    });
    expect(seen(events)).toEqual([
      `a:1 has it for ${LEASE_MS} with 3`,
      'a:1 released',
      `b:1 has it for ${PROVISIONAL_MS} with 64`,
      'b:1 released',
      `c:1 has it for ${PROVISIONAL_MS} with 2`,
    ]);
  });
});
