import { Random } from '../engine/random.js';
import {
  aheadMs,
  otherFault,
  restarts,
  TROUBLE_MS,
  type NodeRestart,
  type QuorumFault,
} from './quorum-faults.js';
import { jump, leftAlone, race, type Cast, type Scene } from './quorum-scenes.js';
import type { Visit } from '../callers/visit.js';

export interface QuorumPlan {
  readonly seed: number;
  readonly nodes: number;
  /** How fast the clock of each node runs that leases are counted with; by less than a hundredth faster than a process's. */
  readonly nodeRates: readonly number[];
  /** How far the wall clock of each node is ahead, in ms. */
  readonly nodesAheadMs: readonly number[];
  readonly processes: readonly { readonly rate: number; readonly callers: readonly (readonly Visit[])[] }[];
  readonly watchdogMs: number;
  readonly commandTimeoutMs: number;
  readonly latencyMs: readonly [number, number];
  readonly faults: readonly QuorumFault[];
  /** When the last fault is over. */
  readonly troubleMs: number;
}

const KEYS = ['a', 'b'];

/** From a seed to a plan, as plain data. */
export const quorumPlan = (seed: number): QuorumPlan => {
  const random = new Random(`quorum ${seed}`);
  const nodes = random.pick([2, 3, 3, 3, 4, 5]);
  const watchdogMs = random.pick([1_000, 1_000, 1_000, 20_000]);
  const visit = (): Visit => ({
    key: random.pick(KEYS),
    thinkMs: random.pick([0, 1, 5, 50, 300]),
    waitMs: random.pick([0, 100, 2_000, 5_000]),
    workMs: random.pick([0, 1, 5, 20, 200, 1_500]),
  });
  const caller = (): Visit[] => Array.from({ length: random.whole(2, 8) }, visit);
  const processes = Array.from({ length: random.whole(2, 4) }, () =>
    Array.from({ length: random.whole(1, 3) }, caller),
  );
  const latencyMs = random.pick([
    [0.2, 0.6],
    [0.5, 3],
    [1, 20],
  ] as const);
  const cast: Cast = { nodes, processes: processes.length, watchdogMs, latencyMs };
  const forgetting = restarts(random, nodes, watchdogMs);
  const scenes = scenesOf(random, cast, forgetting);
  const others = Array.from({ length: random.whole(0, 8) }, () =>
    otherFault(random, nodes, processes.length),
  );
  const played = scenes.flatMap((scene) => scene.faults);
  const faults = [...forgetting, ...others.filter((fault) => !setsClockOf(played, fault)), ...played];
  // Clocks of servers run as fast beside those of processes as may be, or some do and some do not.
  const [slowest, fastest] = random.chance(0.3) ? [1.004, 1.007] : [0.994, 1.006];
  const [processSlowest, processFastest] = slowest > 1 ? [0.9975, 0.999] : [0.998, 1.002];
  return {
    seed,
    nodes,
    nodeRates: Array.from({ length: nodes }, () => random.between(slowest, fastest)),
    nodesAheadMs: Array.from({ length: nodes }, () => (random.chance(0.3) ? 0 : aheadMs(random))),
    processes: processes.map((callers, process) => ({
      rate: random.between(processSlowest, processFastest),
      callers: [...callers, ...callersFor(scenes, process)],
    })),
    watchdogMs,
    commandTimeoutMs: random.pick([100, 300]),
    latencyMs,
    faults,
    troubleMs: Math.max(
      TROUBLE_MS,
      ...faults.map((fault) => fault.at + ('forMs' in fault ? fault.forMs : 0)),
    ),
  };
};

/** Whether the fault sets a clock that is far off in a scene: it would be right again before the scene is over. */
const setsClockOf = (played: readonly QuorumFault[], fault: QuorumFault): boolean =>
  fault.kind === 'clock' && played.some((one) => one.kind === 'clock' && one.node === fault.node);

const scenesOf = (random: Random, cast: Cast, forgetting: readonly NodeRestart[]): readonly Scene[] => {
  const scenes: Scene[] = [];
  const jumps = cast.nodes > 2 && random.chance(0.3) ? jump(random, cast, forgetting) : undefined;
  if (jumps) scenes.push(jumps);
  const races = random.chance(0.3) ? random.whole(1, 5) : 0;
  for (let i = 0; i < races; i++) scenes.push(race(random, cast, jumps));
  if (random.chance(0.2)) scenes.push(leftAlone(random, cast));
  return scenes;
};

const callersFor = (scenes: readonly Scene[], process: number): readonly (readonly Visit[])[] =>
  scenes.flatMap(({ visits }) => visits.flatMap((one) => (one.process === process ? [[one.visit]] : [])));
