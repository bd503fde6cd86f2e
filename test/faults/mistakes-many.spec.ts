import { beforeAll, describe, expect, it } from 'vitest';
import { inOrder } from '../checker/history.js';
import { timelineOf } from '../checker/timeline.js';
import type { Violation } from '../checker/violation.js';
import type { LaboratoryMistake } from '../mistakes/mistake.js';
import { breakLibrary } from '../mistakes/source/broken-library.js';
import { CLUSTER_MISTAKES, REPLICATED_MISTAKES } from '../mistakes/table/cluster.mistakes.js';
import {
  CLUSTER_FAILOVER_MISTAKES,
  SENTINEL_FAILOVER_MISTAKES,
} from '../mistakes/table/failover.mistakes.js';
import { QUORUM_MISTAKES, type QuorumMistake } from '../mistakes/table/quorum.mistakes.js';
import {
  ZOOKEEPER_MISTAKES,
  ZOOKEEPER_SIMULATED_MISTAKES,
  type ZooKeeperSimulatedMistake,
} from '../mistakes/table/zookeeper-simulated.mistakes.js';
import { DirectedStage } from './directed/directed-stage.js';
import { SESSION_MS, SETTINGS } from './settings.js';
import { startCluster } from './topology/cluster.js';
import { Quorum } from './topology/quorum.js';
import { startSentinel } from './topology/sentinel.js';
import type { Topology } from './topology/topology.js';
import { ZooKeeperTopology } from './topology/zookeeper.js';
import type { ReplicasWanted } from './workload/worker-messages.js';

/** Long enough for a schedule by hand, on a machine that is busy with other things. */
const DIRECTED = { ...SETTINGS, watchdogMs: 1_500, commandTimeoutMs: 500 };
/** A session, and time for the reply to a request that comes late. */
const DIRECTED_SESSION = { ...SETTINGS, watchdogMs: SESSION_MS, commandTimeoutMs: 2_500 };
const WORKERS = 2;
/** How often it is played with a broken copy, on a machine that may stand still in the middle of it. */
const TRIES = 3;
const TIMEOUT_MS = 400_000;
/** Replicas take over here only when they are told to, so not on a machine that stands still. */
const NODE_TIMEOUT_MS = 60_000;

const ON_CLUSTER = [...CLUSTER_MISTAKES, ...CLUSTER_FAILOVER_MISTAKES];
const inLaboratory = ({
  laboratory,
  ...mistake
}: QuorumMistake | ZooKeeperSimulatedMistake): LaboratoryMistake[] =>
  laboratory ? [{ ...mistake, laboratory }] : [];
const ON_QUORUM = QUORUM_MISTAKES.flatMap(inLaboratory);
const ON_ZOOKEEPER = [...ZOOKEEPER_SIMULATED_MISTAKES, ...ZOOKEEPER_MISTAKES].flatMap(inLaboratory);

interface Outcome {
  readonly violations: readonly Violation[];
  readonly timeline: string;
}

const intact = new Map<string, Outcome>();
const broken = new Map<string, Outcome>();

const playOnce = async (
  topology: Topology,
  { laboratory }: LaboratoryMistake,
  name: string,
): Promise<Outcome> => {
  const settings = topology.fitness.shape === 'zookeeper' ? DIRECTED_SESSION : DIRECTED;
  const stage = new DirectedStage(topology, name, settings);
  await laboratory.play(stage);
  const { events, violations } = await stage.verdict();
  return { violations, timeline: timelineOf(inOrder(events), violations) };
};

const seenIn = ({ violations }: Outcome, { laboratory }: LaboratoryMistake): string[] =>
  violations.map(({ rule }) => rule).filter((rule) => laboratory.rules.includes(rule));

const playAll = async (topology: Topology, mistakes: readonly LaboratoryMistake[]): Promise<void> => {
  for (const [i, mistake] of mistakes.entries()) {
    intact.set(mistake.name, await playOnce(topology, mistake, `i${i}`));
  }
  for (const [i, mistake] of mistakes.entries()) {
    const { url: library } = breakLibrary(mistake.name, mistake.edits);
    await topology.seat(WORKERS, library);
    for (let attempt = 1; attempt <= TRIES; attempt++) {
      const outcome = await playOnce(topology, mistake, `b${i}-${attempt}`);
      broken.set(mistake.name, outcome);
      if (seenIn(outcome, mistake).length > 0) break;
    }
  }
};

const onQuorum = async (): Promise<void> => {
  await using quorum = await Quorum.start({
    name: 'quorum',
    workers: WORKERS,
    nodes: 3,
    persistence: 'always',
    settings: DIRECTED,
  });
  await playAll(quorum, ON_QUORUM);
};

const onCluster = async (
  mistakes: readonly LaboratoryMistake[],
  replicas?: ReplicasWanted,
): Promise<void> => {
  await using cluster = await startCluster({
    name: 'cluster',
    workers: WORKERS,
    settings: DIRECTED,
    nodeTimeoutMs: NODE_TIMEOUT_MS,
    replicas,
  });
  await playAll(cluster, mistakes);
};

const onSentinel = async (): Promise<void> => {
  await using sentinel = await startSentinel({ name: 'sentinel', workers: WORKERS, settings: DIRECTED });
  await playAll(sentinel, SENTINEL_FAILOVER_MISTAKES);
};

const onZooKeeper = async (): Promise<void> => {
  await using zookeeper = await ZooKeeperTopology.start({
    name: 'zookeeper',
    workers: WORKERS,
    settings: DIRECTED_SESSION,
  });
  await playAll(zookeeper, ON_ZOOKEEPER);
};

beforeAll(async () => {
  await Promise.all([
    onQuorum().then(() => onCluster(REPLICATED_MISTAKES, { min: 1, timeoutMs: 400 })),
    onCluster(ON_CLUSTER).then(onSentinel),
  ]);
  await onZooKeeper();
}, TIMEOUT_MS);

describe.each([
  ['in a quorum', ON_QUORUM],
  ['in ZooKeeper', ON_ZOOKEEPER],
  ['in a cluster', ON_CLUSTER],
  ['behind Sentinel', SENTINEL_FAILOVER_MISTAKES],
  ['where replicas are waited for', REPLICATED_MISTAKES],
] as const)(
  '%s the checker sees what is wrong in a copy of the library that was broken on purpose',
  (_, mistakes) => {
    it('at least in one way', () => {
      expect(mistakes.length).toBeGreaterThan(0);
    });

    it.each(mistakes)('$name', (mistake) => {
      const outcome = broken.get(mistake.name)!;
      expect(seenIn(outcome, mistake), outcome.timeline).not.toEqual([]);
    });

    it.each(mistakes)(
      'and nothing in the library as it is, when the same is done to it: $name',
      ({ name }) => {
        const { violations, timeline } = intact.get(name)!;
        expect(violations, timeline).toEqual([]);
      },
    );
  },
);
