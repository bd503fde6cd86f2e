import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../simulation/engine/random.js';
import { AFTERMATH, LONGEST_LEASE_MS, SETTINGS } from '../settings.js';
import type { Course } from '../apps/apps.js';
import type { Replicated } from '../topology/replicated.js';
import type { Fitness, Topology } from '../topology/topology.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { duringOutage } from './outage.js';
import { withApps } from './with-apps.js';
import { anyNode, fault, groupOf, onNode, type Dose, type Fault, type OnNode } from './fault.js';

interface OnGroup extends Dose {
  readonly group: number;
}

const hasReplicas = ({ shape }: Fitness): boolean => shape === 'sentinel' || shape === 'cluster';
const groupsOf = ({ shape, nodes }: Fitness): number => (shape === 'cluster' ? nodes / 2 : 1);
const anyGroup = (random: Random, fitness: Fitness): number => random.whole(0, groupsOf(fitness) - 1);
const targets = ({ group }: OnGroup): string[] => [groupOf(group)];

const replicatedOf = ({ replicated }: Topology): Replicated => {
  if (!replicated) throw new Error('nobody takes over from anybody here');
  return replicated;
};

/** All apps and workers are in trouble from now until so long after the fault. */
const troubled = (topology: Topology, what: string, work: () => Promise<void>): Promise<void> =>
  duringOutage(topology, what, AFTERMATH.outage, work);

/** A fault after which another server may be the master. Apps have to find it. */
const failover = (
  topology: Topology,
  { group }: OnGroup,
  what: string,
  work: (course: Course) => Promise<void>,
): Promise<void> => withApps(topology, what, group, (course) => troubled(topology, what, () => work(course)));

const promotion = fault<OnGroup>({
  name: 'promotion',
  weight: 2,
  fits: hasReplicas,
  choose: (random, fitness) => ({ group: anyGroup(random, fitness), forMs: 0 }),
  targets,
  describe: ({ group }) => `the replica of group ${group + 1} is promoted, in order`,
  async inflict(topology, dose) {
    const replicated = replicatedOf(topology);
    await failover(topology, dose, 'promotion', () => replicated.promote(dose.group, 'in order'));
  },
});

/** What was given last is known to the old master only. */
const lagging = fault<OnGroup>({
  name: 'promotion of a replica that lags',
  weight: 3,
  fits: hasReplicas,
  choose: (random, fitness) => ({ group: anyGroup(random, fitness), forMs: random.whole(50, 1_500) }),
  targets,
  describe: ({ group, forMs }) =>
    `the replica of group ${group + 1} hears nothing of its master for ${forMs} ms, and is promoted`,
  async inflict(topology, dose) {
    const { group, forMs } = dose;
    const replicated = replicatedOf(topology);
    await failover(topology, dose, 'promotion of a replica that lags', async () => {
      replicated.keepCopiesOut(await replicated.masterOf(group));
      await sleep(forMs);
      await replicated.promote(group, 'at once');
      await replicated.openDoors();
    });
  },
});

const kill = fault<OnGroup & { readonly lagMs: number }>({
  name: 'a master is killed',
  weight: 2,
  fits: hasReplicas,
  choose: (random, fitness) => ({
    group: anyGroup(random, fitness),
    lagMs: random.pick([0, 0, 100, 500]),
    forMs: random.whole(0, 1_500),
  }),
  targets,
  describe: ({ group, lagMs, forMs }) =>
    `the master of group ${group + 1} is killed, ${lagMs} ms after its replica has heard of it last, and ` +
    `comes back as a replica ${forMs} ms after the apps acquire keys again`,
  async inflict(topology, dose) {
    const { group, lagMs, forMs } = dose;
    const replicated = replicatedOf(topology);
    await failover(topology, dose, 'a master is killed', async ({ recovered }) => {
      const master = await replicated.masterOf(group);
      if (lagMs > 0) replicated.keepCopiesOut(master);
      await sleep(lagMs);
      await master.kill();
      await replicated.takenOver(group, master);
      await replicated.openDoors();
      await recovered();
      await sleep(forMs);
      await replicated.startAgain(master);
    });
  },
});

const partition = fault<OnGroup>({
  name: 'partition between nodes',
  weight: 3,
  fits: hasReplicas,
  choose: (random, fitness) => ({ group: anyGroup(random, fitness), forMs: random.whole(500, 4_000) }),
  targets,
  describe: ({ group, forMs }) =>
    `the master of group ${group + 1} and all other servers do not reach each other for ${forMs} ms; clients reach all`,
  async inflict(topology, dose) {
    const { group, forMs } = dose;
    const replicated = replicatedOf(topology);
    await failover(topology, dose, 'partition between nodes', async () => {
      await replicated.isolate(await replicated.masterOf(group));
      await sleep(forMs);
      await replicated.openDoors();
    });
  },
});

const stop = fault<OnGroup>({
  name: 'a master is stopped',
  weight: 2,
  fits: hasReplicas,
  choose: (random, fitness) => ({ group: anyGroup(random, fitness), forMs: random.whole(0, 1_500) }),
  targets,
  describe: ({ group, forMs }) =>
    `the master of group ${group + 1} is stopped, and goes on ${forMs} ms after the apps acquire keys again`,
  async inflict(topology, dose) {
    const { group, forMs } = dose;
    const replicated = replicatedOf(topology);
    await failover(topology, dose, 'a master is stopped', async ({ recovered }) => {
      const master = await replicated.masterOf(group);
      await master.server.kill('SIGSTOP');
      try {
        await replicated.takenOver(group, master);
        await recovered();
        await sleep(forMs);
      } finally {
        await master.server.kill('SIGCONT');
      }
    });
  },
});

const sentinelsOf = (topology: Topology): readonly RedisServer[] => {
  const { sentinels } = replicatedOf(topology);
  if (!sentinels) throw new Error('there are no sentinels here');
  return sentinels;
};

/** It still takes connections. An app that looks for the master asks it first. */
const hungSentinel = fault<OnGroup>({
  name: 'a sentinel hangs',
  weight: 2,
  fits: ({ shape }) => shape === 'sentinel',
  choose: () => ({ group: 0, forMs: 0 }),
  targets,
  describe: () => 'the first sentinel is stopped, and all connections to the master are ended',
  async inflict(topology, { group }) {
    const what = 'a sentinel hangs';
    const { server } = await replicatedOf(topology).masterOf(group);
    const [first] = sentinelsOf(topology);
    await withApps(topology, what, group, ({ struck, recovered }) =>
      troubled(topology, what, async () => {
        await first!.kill('SIGSTOP');
        try {
          for (const type of ['normal', 'pubsub']) await server.cli('CLIENT', 'KILL', 'TYPE', type);
          struck();
          await recovered();
        } finally {
          await first!.kill('SIGCONT');
        }
      }),
    );
  },
});

/** An app that listens to the sentinels has to listen again before the promotion. */
const sentinelsRestart = fault<OnGroup>({
  name: 'all sentinels restart',
  weight: 2,
  fits: ({ shape }) => shape === 'sentinel',
  choose: (random) => ({ group: 0, forMs: random.whole(0, 1_000) }),
  targets,
  describe: ({ forMs }) =>
    `all sentinels are killed, and started after ${forMs} ms; then the replica is promoted, in order`,
  async inflict(topology, dose) {
    const sentinels = sentinelsOf(topology);
    await failover(topology, dose, 'all sentinels restart', async () => {
      await Promise.all(sentinels.map((sentinel) => sentinel.kill('SIGKILL')));
      await sleep(dose.forMs);
      await Promise.all(sentinels.map((sentinel) => sentinel.restart()));
      await replicatedOf(topology).promote(dose.group, 'in order');
    });
  },
});

/** Before anybody notices: its replica copies that. Redis's documents warn of it. */
const empty = fault<OnGroup>({
  name: 'a master comes back empty',
  weight: 1,
  fits: hasReplicas,
  choose: (random, fitness) => ({ group: anyGroup(random, fitness), forMs: random.whole(0, 100) }),
  targets,
  describe: ({ group, forMs }) =>
    `the master of group ${group + 1} is killed, and comes back empty after ${forMs} ms`,
  async inflict(topology, { group, forMs }) {
    const replicated = replicatedOf(topology);
    await troubled(topology, 'a master comes back empty', async () => {
      const master = await replicated.masterOf(group);
      topology.scribe.unprotected('a master lost its data', forMs + 1_000 + LONGEST_LEASE_MS);
      await master.kill();
      await sleep(forMs);
      await replicated.startEmpty(master);
      topology.scribe.unprotected('a master is empty', LONGEST_LEASE_MS);
    });
  },
});

/**
 * Leases end sooner or later on it, by less than one of them. One that is hours off would keep what killed workers had for
 * hours, on whichever server comes after it; and its tokens are only copied where the last of them is.
 */
const clock = fault<OnNode & { readonly jumpMs: number }>({
  name: 'clock of a server is wrong',
  weight: 2,
  fits: (fitness) => hasReplicas(fitness) && fitness.settableClock,
  choose: (random, fitness) => ({
    ...anyNode(random, fitness),
    jumpMs: random.pick([-1, 1]) * random.whole(300, 1_500),
    forMs: random.whole(300, 2_000),
  }),
  targets: onNode,
  describe: ({ node, jumpMs, forMs }) =>
    `the clock of n${node + 1} is set by ${jumpMs} ms for ${forMs} ms, and then right again`,
  async inflict(topology, { node, jumpMs, forMs }) {
    const { scribe, nodes } = topology;
    const set = (ms: number): void => {
      scribe.unprotected(`the clock of n${node + 1} is set by ${ms} ms`, LONGEST_LEASE_MS + Math.abs(ms));
      nodes[node]!.jump(ms);
    };
    await troubled(topology, 'clock of a server is wrong', async () => {
      set(jumpMs);
      await sleep(forMs);
      set(-jumpMs);
      await sleep(LONGEST_LEASE_MS);
    });
  },
});

/** What is in the slots that are moved: all kinds of locks, held and waited for. */
const MOVED = ['hot-1', 'hot-2', 'hot-3', 'shared-1', 'fair-1', 'permits-1', 'permits-2', 'permits-3'];

interface OnSlot extends Dose {
  readonly key: string;
  readonly groups: number;
  readonly pausesMs: readonly [number, number];
}

/** Whatever becomes of locks at a failover: a slot takes its locks with it, and nobody is in two minds about who has one. */
const move = fault<OnSlot>({
  name: 'slot moves',
  weight: 6,
  fits: ({ shape }) => shape === 'cluster',
  choose: (random, fitness) => ({
    key: random.pick(MOVED),
    groups: groupsOf(fitness),
    pausesMs: [random.whole(0, 150), random.whole(0, 150)],
    forMs: 0,
  }),
  targets: ({ groups }) => Array.from({ length: groups }, (_, group) => groupOf(group)),
  describe: ({ key, pausesMs: [before, after] }) =>
    `the slot of ${key} moves: its keys ${before} ms after it begins, and ${after} ms before it ends`,
  async inflict(topology, { key, pausesMs: [before, after] }) {
    const finalKey = `${SETTINGS.keyPrefix}${topology.round}:${key}`;
    await troubled(topology, 'slot moves', () =>
      replicatedOf(topology).moveSlot!(finalKey, {
        begun: () => sleep(before),
        keysAreThere: () => sleep(after),
      }),
    );
  },
});

export const REPLICATED_FAULTS: readonly Fault[] = [
  promotion,
  lagging,
  kill,
  stop,
  partition,
  hungSentinel,
  sentinelsRestart,
  empty,
  clock,
  move,
];
