import type { Random } from '../../simulation/engine/random.js';
import type { Fitness, Topology } from '../topology/topology.js';

/** What a fault is to do, as plain data: it is chosen from a seed, and can be printed and written by hand. */
export interface Dose {
  /** How long it lasts, in ms; 0 for what happens in one moment. */
  readonly forMs: number;
}

/** One kind of fault. */
export interface Fault<D extends Dose = Dose> {
  readonly name: string;
  /** How often it is chosen, beside the others. */
  readonly weight: number;
  /** Whether the topology can have it, and whether it may then happen beside those of another family. */
  fits(fitness: Fitness): boolean;
  choose(random: Random, fitness: Fitness): D;
  /** What it keeps busy: two faults never act on the same thing at the same time. */
  targets(dose: D): readonly string[];
  /** What it does, for a person. */
  describe(dose: D): string;
  /** Does it, and resolves when it is over. Whatever may be felt of it is in the history. */
  inflict(topology: Topology, dose: D): Promise<void>;
}

/** Keeps the type of the dose inside. */
export const fault = <D extends Dose>(definition: Fault<D>): Fault => definition;

/** Names for targets. */
export const linkOf = (seat: number): string => `line of w${seat + 1}`;
export const processOf = (seat: number): string => `w${seat + 1}`;
export const serverOf = (node: number): string => `server ${node + 1}`;
/** What belongs together where one server takes over from another: a promotion concerns all of it. */
export const groupOf = (group: number): string => `group ${group + 1}`;

/** The topology's servers are one, or know nothing of each other. */
export const isIndependent = ({ shape }: Fitness): boolean => shape === 'one' || shape === 'quorum';
/** Redis keeps the locks, and neither a database nor ZooKeeper. */
export const isRedis = ({ shape }: Fitness): boolean => shape !== 'database' && shape !== 'zookeeper';
export const isDatabase = ({ shape }: Fitness): boolean => shape === 'database';
export const isZooKeeper = ({ shape }: Fitness): boolean => shape === 'zookeeper';
export const isSingle = ({ shape }: Fitness): boolean => shape === 'one';

/** A server, and what belongs together with it. */
export interface OnNode extends Dose {
  readonly node: number;
  readonly group: number;
}

/** In a cluster masters come first, and their replicas after them in the same order. */
const groupOfNode = (node: number, { shape, nodes }: Fitness): number => {
  if (shape === 'sentinel') return 0;
  return shape === 'cluster' ? node % (nodes / 2) : node;
};

export const anyNode = (random: Random, fitness: Fitness): Pick<OnNode, 'node' | 'group'> => {
  const node = fitness.nodes === 1 ? 0 : random.whole(0, fitness.nodes - 1);
  return { node, group: groupOfNode(node, fitness) };
};

export const onNode = ({ node, group }: OnNode): string[] => [serverOf(node), groupOf(group)];

/** So many of a few numbers from 0 on. */
export const someOf = (random: Random, count: number, of: number): number[] => {
  const left = Array.from({ length: of }, (_, i) => i);
  return Array.from({ length: count }, () => left.splice(random.whole(0, left.length - 1), 1)[0]!).sort(
    (a, b) => a - b,
  );
};

/** How many of the nodes may fail at once so that a majority is left. */
export const mayFail = ({ nodes, sound }: Fitness): number => sound - (Math.floor(nodes / 2) + 1);

export const nodesText = (nodes: readonly number[]): string => nodes.map((node) => `n${node + 1}`).join(', ');

export const anySeat = (random: Random, { seats }: Fitness): number => random.whole(0, seats - 1);

/** One seat, or all of them. */
export const someSeats = (random: Random, fitness: Fitness): number[] =>
  random.chance(0.6) ? [anySeat(random, fitness)] : Array.from({ length: fitness.seats }, (_, seat) => seat);

export const namesOf = (seats: readonly number[]): string => seats.map(processOf).join(', ');
