import type { Redis } from 'ioredis';
import type { ExclusiveClaim } from '../../../lib/core/seam/claim.js';
import type { FullStore } from '../../support/stores/harness.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { redisHarness } from '../../support/stores/redis.harness.js';
import { until } from '../../support/async.js';
import { TcpProxy, type ProxyConnection } from '../../support/tcp-proxy.js';
import { closeAll, connectAll, type Loss, type World } from './world.js';

const COMMAND_TIMEOUT_MS = 300;

/**
 * Brings the end of every hold closer, and gives those that end. The last millisecond passes by itself, so that it is
 * Redis that ends them, as it ends any lease.
 */
const AGE = `
local ended = {}
for _, name in ipairs(redis.call('keys', '*')) do
  local left = redis.call('pttl', name) - ARGV[1]
  if redis.call('type', name).ok == 'hash' then
    if left <= 0 then ended[#ended + 1] = name end
    redis.call('pexpire', name, math.max(left, 1))
  end
end
return ended
`;

const age = async (admin: Redis, ms: number): Promise<void> => {
  const ended = (await admin.eval(AGE, 0, ms)) as string[];
  if (ended.length === 0) return;
  await until(async () => (await admin.exists(...ended)) === 0, { what: 'Redis has ended what was over' });
};

/** The acquire of `claim` on its way to Redis: calls `fault` just before it passes, once. */
const atAcquire = (
  proxy: TcpProxy,
  { finalKey: key }: ExclusiveClaim,
  fault: (connection: ProxyConnection) => void,
): void => {
  const stop = proxy.onData((connection, direction, chunk) => {
    if (direction !== 'toServer' || !chunk.includes(key)) return;
    stop();
    fault(connection);
  });
};

/** The next reply on the connection: calls `action` in its place. */
const atReply = (proxy: TcpProxy, of: ProxyConnection, action: () => void): void => {
  const stop = proxy.onData((connection, direction) => {
    if (connection !== of || direction !== 'toClient') return;
    stop();
    action();
  });
};

const FAULTS: Readonly<Record<Loss, (proxy: TcpProxy, connection: ProxyConnection) => void>> = {
  request: (_proxy, connection) => {
    connection.blackhole();
    setImmediate(() => connection.cut());
  },
  reply: (proxy, connection) => {
    connection.swallowReplies();
    atReply(proxy, connection, () => connection.cut());
  },
  late: (_proxy, connection) => connection.blackhole(),
};

const failureOf = async (request: Promise<unknown>): Promise<StoreFailure> => {
  const failure = await request.catch((error: unknown) => error);
  if (!(failure instanceof StoreFailure)) throw new Error('the answer was not lost', { cause: failure });
  return failure;
};

/** Lets what was held up on the connection arrive, if it still can. */
const deliver = async (proxy: TcpProxy, connection: ProxyConnection, admin: Redis): Promise<void> => {
  connection.restore();
  await until(() => !proxy.connections.includes(connection), { what: 'the old connection is gone' });
  // Redis reads what there is to read before it answers whoever asks later.
  for (let i = 0; i < 3; i += 1) await admin.ping();
};

/** A real server. Each process has a line of its own to it, on which things get lost. */
export const redisWorld = async (): Promise<World> => {
  const harness = await redisHarness();
  const proxies: TcpProxy[] = [];
  const stores = await connectAll(async (actor) => {
    const proxy = (proxies[actor] = await TcpProxy.start(harness.server));
    const store: FullStore = new RedisStore({ redis: proxy.url, commandTimeoutMs: COMMAND_TIMEOUT_MS });
    await store.ping();
    return store;
  });

  const acquireWithoutReply = async (
    actor: number,
    claim: ExclusiveClaim,
    loss: Loss,
  ): Promise<StoreFailure> => {
    const proxy = proxies[actor]!;
    const store = stores[actor]!;
    let hit: ProxyConnection | undefined;
    atAcquire(proxy, claim, (connection) => FAULTS[loss](proxy, (hit = connection)));
    const failure = await failureOf(store.kinds.exclusive.acquire(claim));
    await until(() => store.ping().then(() => true), { what: 'the store is connected again' });
    if (loss === 'late') {
      await settle(store, claim, failure);
      await deliver(proxy, hit!, harness.admin);
    }
    return failure;
  };

  return {
    ...harness,
    stores,
    unitMs: 20_000,
    pass: (ms) => age(harness.admin, ms),
    acquireWithoutReply,
    close: async () => {
      await closeAll(stores);
      for (const proxy of proxies) proxy.close();
      await harness.cleanup();
    },
  };
};

/** Releases what may or may not be there, until the answer is final; true when it was there. */
export const settle = async (
  store: FullStore,
  claim: ExclusiveClaim,
  uncertain: StoreFailure,
): Promise<boolean> => {
  const reply = await until(() => store.kinds.exclusive.release(claim, { uncertain }), {
    what: 'the answer is final',
  });
  return reply.wasHeld;
};
