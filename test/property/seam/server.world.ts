import type { ExclusiveClaim } from '../../../lib/core/seam/claim.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { until } from '../../support/async.js';
import type { FullStore, StoreHarness } from '../../support/stores/harness.js';
import { TcpProxy, type ProxyConnection } from '../../support/tcp-proxy.js';
import { closeAll, connectAll, type Loss, type World } from './world.js';

/** What the world on a real server needs to know of it. */
interface WorldServer extends Pick<World, 'leftMs' | 'polled'> {
  readonly harness: StoreHarness;
  readonly server: { readonly host: string; readonly port: number };
  /** Makes a store that reaches the server through the proxy. */
  open(proxy: TcpProxy, commandTimeoutMs: number): FullStore;
  /** Brings the end of every hold closer. Resolves when the server has ended those that end. */
  age(ms: number): Promise<void>;
  /** Sends a request on a connection of its own, and resolves with its reply. */
  ask(): Promise<unknown>;
}

const COMMAND_TIMEOUT_MS = 300;

/** The acquire of `claim` on its way to Redis: calls `fault` just before it passes, once. */
const atAcquire = (
  proxy: TcpProxy,
  { finalKey: key }: ExclusiveClaim,
  fault: (connection: ProxyConnection) => void,
): void => {
  // SQL has it as bytes in hexadecimal digits.
  const hex = Buffer.from(key).toString('hex');
  const stop = proxy.onData((connection, direction, chunk) => {
    if (direction !== 'toServer' || !(chunk.includes(key) || chunk.includes(hex))) return;
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
const deliver = async (
  proxy: TcpProxy,
  connection: ProxyConnection,
  ask: () => Promise<unknown>,
): Promise<void> => {
  connection.restore();
  await until(() => !proxy.connections.includes(connection), { what: 'the old connection is gone' });
  // A server reads what there is to read before it answers later requests.
  for (let i = 0; i < 3; i += 1) await ask();
};

/** A real server. Each process has a line of its own to it, on which things get lost. */
export const serverWorld = async ({
  harness,
  server,
  open,
  age,
  ask,
  ...traits
}: WorldServer): Promise<World> => {
  const proxies: TcpProxy[] = [];
  const stores = await connectAll(async (actor) => {
    const proxy = (proxies[actor] = await TcpProxy.start(server));
    const store = open(proxy, COMMAND_TIMEOUT_MS);
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
      await deliver(proxy, hit!, ask);
    }
    return failure;
  };

  return {
    ...harness,
    ...traits,
    stores,
    unitMs: 20_000,
    pass: age,
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
