import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../simulation/engine/random.js';
import { AFTERMATH, LONGEST_LEASE_MS } from '../settings.js';
import type { Course } from '../apps/apps.js';
import type { RedisNode } from '../topology/redis-node.js';
import type { Fitness, Topology } from '../topology/topology.js';
import {
  anyNode,
  fault,
  isSingle,
  isIndependent,
  linkOf,
  mayFail,
  nodesText,
  onNode,
  serverOf,
  someOf,
  type Dose,
  type Fault,
  type OnNode,
} from './fault.js';
import { duringOutage } from './outage.js';
import { withApps } from './with-apps.js';

/**
 * Lost data and a clock that was ahead would let tokens fall: that is not promised, and not tried. In a quorum a clock is
 * set only where the server starts anew with it, and then nothing it says counts.
 */
export const mayLoseData = ({ shape, settableClock, keepsData }: Fitness): boolean =>
  shape === 'one' ? !settableClock : shape === 'quorum' && !keepsData;

/** The only server, all of whose commands are seen. */
const theNode = ({ watched }: Topology): RedisNode => {
  if (!watched) throw new Error('this fault is for one server');
  return watched;
};

/** While they come back, no other server may forget what it had: nobody would be left who knows. */
export const MEMORY = 'what nodes remember';

interface OnRestarting extends Dose {
  readonly nodes: readonly number[];
  readonly seats: number;
}

/** Which servers restart: of a quorum any number, where nothing is lost by that. */
const restarting = (random: Random, fitness: Fitness, keepData: boolean): number[] => {
  const { nodes, sound } = fitness;
  if (nodes === 1) return [0];
  return keepData
    ? someOf(random, random.whole(1, nodes), nodes)
    : someOf(random, random.whole(1, mayFail(fitness)), sound);
};

const restart = (
  name: string,
  weight: number,
  keepData: boolean,
  fits: (fitness: Fitness) => boolean,
): Fault =>
  fault<OnRestarting>({
    name,
    weight,
    fits,
    choose: (random, fitness) => ({
      nodes: restarting(random, fitness, keepData),
      seats: fitness.seats,
      forMs: random.whole(20, 900),
    }),
    targets: ({ nodes, seats }) => [
      ...nodes.map(serverOf),
      ...(keepData ? [] : [MEMORY]),
      ...Array.from({ length: seats }, (_, seat) => linkOf(seat)),
    ],
    describe: ({ nodes, forMs }) =>
      `${nodesText(nodes)} is killed, and started ${keepData ? 'with its data' : 'empty'} after ${forMs} ms`,
    async inflict(topology, dose) {
      await withApps(topology, name, 0, (course) =>
        duringOutage(topology, name, AFTERMATH.outage, () =>
          topology.watched
            ? restartWatched(topology, topology.watched, dose, keepData)
            : restartSome(topology, dose, keepData, course),
        ),
      );
      // Who restarted empty does not count until then, and may not be the second that has forgotten.
      if (!keepData && !topology.watched) await sleep(2 * LONGEST_LEASE_MS);
    },
  });

const restartWatched = async (
  { scribe, seats }: Topology,
  node: RedisNode,
  { forMs }: OnRestarting,
  keepData: boolean,
): Promise<void> => {
  if (!keepData) scribe.unprotected('Redis lost its data', forMs + 1_000 + LONGEST_LEASE_MS);
  // Nobody may get in before everything that is done there is seen.
  for (const { link } of seats) link.refuse();
  await node.kill();
  if (!keepData) await node.lostAll();
  await sleep(forMs);
  await node.startAgain({ keepData });
  if (!keepData) scribe.unprotected('Redis is empty', LONGEST_LEASE_MS);
  for (const { link } of seats) await link.restore();
};

const restartSome = async (
  { nodes: all }: Topology,
  { nodes: numbers, forMs }: OnRestarting,
  keepData: boolean,
  { struck }: Course,
): Promise<void> => {
  const nodes = numbers.map((number) => all[number]!);
  await Promise.all(nodes.map((node) => node.kill()));
  struck();
  await sleep(forMs);
  await Promise.all(nodes.map((node) => node.startAgain({ keepData })));
};

const loading = fault<OnNode>({
  name: 'LOADING',
  weight: 1,
  fits: (fitness) => isSingle(fitness) && fitness.keepsData,
  choose: (random, fitness) => ({ ...anyNode(random, fitness), forMs: random.whole(300, 1_000) }),
  targets: onNode,
  describe: ({ forMs }) => `Redis is killed, and loads its data for about ${forMs} ms`,
  async inflict(topology, { forMs }) {
    const node = theNode(topology);
    await duringOutage(topology, 'Redis loads its data', AFTERMATH.outage, async () => {
      await node.fill(forMs);
      await node.kill();
      await node.startSlowly();
    });
  },
});

export const RESTART_FAULTS: readonly Fault[] = [
  restart('SIGKILL Redis, data kept', 2, true, (fitness) => isIndependent(fitness) && fitness.keepsData),
  restart('SIGKILL Redis, data lost', 1, false, mayLoseData),
  loading,
];
