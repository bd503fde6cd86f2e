import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../support/async.js';
import { HEALTHY } from '../../support/proxy-connection.js';
import type { ProxyConnection } from '../../support/tcp-proxy.js';
import type { Ensemble } from '../topology/ensemble/ensemble.js';
import type { Seat } from '../topology/seat.js';
import type { DirectedStage } from './directed-stage.js';
import { holder, KEY } from './tasks.js';

/** A ping, as every client of ZooKeeper sends it. */
const PING = Buffer.from([0, 0, 0, 8, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 11]);
const HAMPERED_MS = 12_000;

const ensembleOf = ({ topology }: DirectedStage): Ensemble => {
  if (!topology.ensemble) throw new Error('this schedule is for ZooKeeper');
  return topology.ensemble;
};

/** Resolves when the next ping of the worker has its reply. */
const pinged = (seat: Seat): Promise<void> =>
  new Promise((resolve) => {
    let from: ProxyConnection | undefined;
    const stop = seat.link.onData((connection, direction, chunk) => {
      if (direction === 'toServer' && chunk.includes(PING)) from = connection;
      if (direction === 'toServer' || connection !== from) return;
      stop();
      resolve();
    });
  });

/** Lets a worker reach only these servers. */
const keptTo = async (seat: Seat, servers: readonly number[]): Promise<void> => {
  const others = seat.linksTo([0, 1, 2].filter((number) => !servers.includes(number)));
  others.refuse();
  others.cut();
  await until(() => seat.linksTo(servers).connections.length > 0, { what: `${seat.name} is connected` });
};

/** How long both may believe in the lock. */
const TOGETHER_MS = 300;

/** Ends both holders, a while after the second one has the lock. */
const bothEnd = async ({ one, two }: DirectedStage): Promise<void> => {
  await two.notified('B has it');
  await sleep(TOGETHER_MS);
  two.go('B ends');
  one.go('A ends');
};

/** A request of a holder arrives, its reply comes late, and nothing else gets through until another worker has the lock. */
export const lateReply = async (stage: DirectedStage): Promise<void> => {
  const { one, two } = stage;
  const other = { style: 'acquire', keys: ['other'], waitMs: 100, steps: [] } as const;
  stage.hampered(one, HAMPERED_MS);
  await stage.perform(one, other);
  stage.start(one, holder('A'));
  await one.notified('A has it');
  stage.start(two, holder('B', { waitMs: 10_000 }));
  // A ping without a reply would end the connection earlier.
  await pinged(one);
  one.link.refuse();
  let late: ProxyConnection | undefined;
  const requested = stage.requesting(one, 'acquire', (connection) => {
    late = connection;
    connection.blackhole(['toClient']);
    setImmediate(() => connection.blackhole());
  });
  stage.start(one, other);
  await requested;
  await sleep(1_850);
  late!.apply({ ...HEALTHY, mode: { toServer: 'hold', toClient: 'forward' } });
  await bothEnd(stage);
};

/** The server of a holder still answers pings, though it is cut off and the leader ends the session. */
export const serverCutOff = async (stage: DirectedStage): Promise<void> => {
  const { one, two } = stage;
  const ensemble = ensembleOf(stage);
  const [leader, follower, another] = await ensemble.leaderFirst();
  stage.hampered(one, HAMPERED_MS);
  stage.hampered(two, HAMPERED_MS);
  await keptTo(one, [follower!]);
  await keptTo(two, [leader!, another!]);
  stage.start(one, holder('A'));
  await one.notified('A has it');
  stage.start(two, holder('B', { waitMs: 10_000 }));
  await pinged(one);
  // The next ping is sent 900 ms after this one. Then the server is cut off, and has not noticed it.
  await sleep(300);
  ensemble.isolate(follower!);
  await bothEnd(stage);
};

/** A waiting worker gets another connection, and the lock is released after that. */
export const anotherConnection = async (stage: DirectedStage): Promise<void> => {
  const { one, two } = stage;
  const ensemble = ensembleOf(stage);
  stage.start(one, holder('A'));
  await one.notified('A has it');
  stage.start(two, { style: 'acquire', keys: [KEY], waitMs: 4_000, steps: [] });
  // A holder watches its node, too.
  await until(async () => (await ensemble.watches()) > 1, { what: 'the waiting worker watches' });
  stage.hampered(two, 1_000);
  two.link.cut();
  await pinged(two);
  one.go('A ends');
  await stage.done();
};

/** The reply to the creation of a node is lost. */
export const lostReply = async (stage: DirectedStage): Promise<void> => {
  const { one } = stage;
  stage.hampered(one, 4_000);
  const task = { style: 'acquire', keys: [KEY], waitMs: 100, steps: [] } as const;
  await stage.perform(one, task);
  const requested = stage.requesting(one, 'acquire', (connection) => connection.swallowReplies());
  stage.start(one, task);
  await requested;
  await stage.done();
};
