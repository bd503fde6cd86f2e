import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import type { Curator } from '../../support/curator/curator.js';
import type { OpenLocksOn } from '../../support/stores/open-locks-on.js';
import type { ZooKeeperEnsemble } from '../../support/servers/zookeeper-ensemble.js';
import { NodeContender, overlapsOf } from './contest.js';
import { CuratorSides, participants } from './sides.js';

/** An election on a busy machine must end no session. */
const SESSION_MS = 30_000;
const LIMIT_MS = 120_000;
const THREADS = 3;
const WORK_MS = 2;

let sides: CuratorSides<ZooKeeperEnsemble>;
let java: Curator;
let nodes: readonly OpenLocksOn[];
let contenders: readonly NodeContender[];

beforeAll(async () => {
  sides = await CuratorSides.onEnsemble();
  java = await sides.java({ sessionTimeoutMs: SESSION_MS });
  nodes = [1, 2, 3].map(() => sides.node({ store: { sessionTimeoutMs: SESSION_MS }, waitMs: LIMIT_MS }));
  contenders = nodes.map(({ locks }) => new NodeContender(locks));
});
afterAll(() => sides[Symbol.asyncDispose]());

const contest = (key: string, rounds: number) =>
  Promise.all([
    java.send('contend', { name: key, threads: THREADS, rounds, workMs: WORK_MS, forMs: LIMIT_MS }),
    ...contenders.map((one) => one.contend({ key, rounds, workMs: WORK_MS })),
  ]);

it(
  'Node and Java never overlap while the leader is killed and restarted, and all go on',
  async () => {
    const [key, rounds, roundsAfter] = ['/ensemble/order', 100, 20];
    const leader = await sides.server.leader();
    let isOver = false;
    const contested = contest(key, rounds).then((had) => {
      isOver = true;
      return had;
    });
    await until(() => contenders.every(({ times }) => times.length >= rounds / 5), {
      what: 'a fifth of the sections is done',
      timeoutMs: LIMIT_MS,
    });
    await leader.kill('SIGKILL');
    const killedAt = Date.now();
    await sides.server.leader();
    expect(isOver).toBe(false);
    await leader.restart();
    const [during] = await contested;
    await sides.server.ready();
    const [after] = await contest(key, roundsAfter);

    const all = [...during, ...after, ...contenders];
    expect(overlapsOf(all)).toEqual([]);
    expect(during.map(({ served }) => served)).toEqual(Array(THREADS).fill(rounds));
    expect(after.map(({ served }) => served)).toEqual(Array(THREADS).fill(roundsAfter));
    expect(contenders.map(({ times }) => times.length)).toEqual(Array(THREADS).fill(rounds + roundsAfter));
    expect(nodes.flatMap(({ lost }) => lost)).toEqual([]);
    await participants(java, { name: key, count: 0 });

    const begins = all.flatMap(({ times }) => times.map(([beganAt]) => beganAt)).sort((a, b) => a - b);
    const gaps = begins.slice(1).map((at, i) => at - begins[i]!);
    const failures = contenders.reduce((sum, one) => sum + one.failures, 0);
    console.log(
      `ensemble: ${begins.length} sections, ${begins.filter((at) => at > killedAt).length} after the kill, ` +
        `longest pause ${Math.round(Math.max(...gaps))} ms, ${failures} requests of Node failed`,
    );
  },
  2 * LIMIT_MS,
);
