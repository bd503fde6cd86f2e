import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../support/async.js';
import { HEALTHY } from '../../support/proxy-connection.js';
import type { ProxyConnection } from '../../support/tcp-proxy.js';
import type { Ensemble } from '../topology/ensemble/ensemble.js';
import type { Seat } from '../topology/seat.js';
import type { DirectedStage } from './directed-stage.js';
import { holder, KEY } from './tasks.js';

/** A beat of a session: a sync, or a read in its place, with the path of the root. */
const BEATS = [9, 4].map((op) => Buffer.from([0, 0, 0, op, 0, 0, 0, 1, 0x2f]));
const HAMPERED_MS = 12_000;

const ensembleOf = ({ topology }: DirectedStage): Ensemble => {
  if (!topology.ensemble) throw new Error('this schedule is for ZooKeeper');
  return topology.ensemble;
};

/** Resolves when the next beat of the worker has its reply. */
const hasBeaten = (seat: Seat): Promise<void> =>
  new Promise((resolve) => {
    let from: ProxyConnection | undefined;
    const stop = seat.link.onData((connection, direction, chunk) => {
      if (direction === 'toServer' && BEATS.some((beat) => chunk.includes(beat))) from = connection;
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
  // A beat without a reply would end the connection earlier.
  await hasBeaten(one);
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

/** The server of a holder still answers reads, though it is cut off and the leader ends the session. */
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
  await hasBeaten(one);
  // The next beat is sent 900 ms after this one. Then the server is cut off, and has not noticed it.
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
  await hasBeaten(two);
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

/** Time for a sync and a list on a server, and for a message between two, in ms. */
const UNDONE_MS = 80;
const BACK_MS = 30;

/**
 * A follower is cut off with a create that it passes on. Its client undoes that on the leader, and comes back to the
 * follower. Then the leader gets the create, and hears that the session is back.
 */
export const createUnderWay = async (stage: DirectedStage): Promise<void> => {
  const { one } = stage;
  const ensemble = ensembleOf(stage);
  const task = { style: 'withLock', keys: [KEY], waitMs: 200, steps: [] } as const;
  const servers = await ensemble.leaderFirst();
  const [leader, follower, other] = servers.map((number) => one.linksTo([number]));
  stage.hampered(one, 5_000);
  await stage.perform(one, task);
  for (const link of [leader!, other!]) {
    link.refuse();
    link.cut();
  }
  await until(() => follower!.connections.length > 0);
  await stage.perform(one, { ...task, waitMs: 1_000 });
  ensemble.isolate(servers[1]!);
  await stage.perform(one, task);
  follower!.refuse();
  follower!.cut();
  await leader!.restore();
  await until(() => leader!.connections.length > 0);
  await sleep(UNDONE_MS);
  leader!.refuse();
  leader!.cut();
  await follower!.restore();
  await until(() => follower!.connections.length > 0);
  await sleep(BACK_MS);
  await ensemble.served();
};
