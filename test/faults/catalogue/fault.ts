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
export const lineOf = (seat: number): string => `line of w${seat + 1}`;
export const processOf = (seat: number): string => `w${seat + 1}`;
export const SERVER = 'server';

export const anySeat = (random: Random, { seats }: Fitness): number => random.whole(0, seats - 1);

/** One seat, or all of them. */
export const someSeats = (random: Random, fitness: Fitness): number[] =>
  random.chance(0.6) ? [anySeat(random, fitness)] : Array.from({ length: fitness.seats }, (_, seat) => seat);

export const namesOf = (seats: readonly number[]): string => seats.map(processOf).join(', ');
