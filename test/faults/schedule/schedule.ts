import { Random } from '../../simulation/engine/random.js';
import { FAULTS, faultNamed } from '../catalogue/index.js';
import type { Dose } from '../catalogue/fault.js';
import type { Fitness } from '../topology/topology.js';

/** A fault and when it comes, in ms from the beginning. */
export interface Planned {
  readonly atMs: number;
  readonly fault: string;
  readonly dose: Dose;
}

/** What a round does to its topology. The same seed, round and fitness make the same one, for ever. */
export type Schedule = readonly Planned[];

export interface Length {
  readonly faults: number;
  readonly forMs: number;
}

/** All faults that fit, or those of these that do, as often as they weigh, shuffled. */
const deck = (seed: string, fitness: Fitness, among: readonly string[] | undefined): string[] => {
  const random = new Random(seed);
  const cards = FAULTS.filter(
    (fault) => fault.fits(fitness) && (among === undefined || among.includes(fault.name)),
  ).flatMap(({ name, weight }) => Array.from({ length: weight }, () => name));
  for (let i = cards.length - 1; i > 0; i--) {
    const j = random.whole(0, i);
    [cards[i], cards[j]] = [cards[j]!, cards[i]!];
  }
  // Each kind once before any comes again: short runs are to see as many as they can.
  return [...new Set(cards), ...cards.filter((name, i) => cards.indexOf(name) !== i)];
};

/** Rounds draw from one deck, one after the other, so that together they have all kinds. */
export const plan = (
  seed: string,
  round: number,
  fitness: Fitness,
  { faults, forMs }: Length,
  among?: readonly string[],
): Schedule => {
  const cards = deck(seed, fitness, among);
  if (cards.length === 0) throw new Error(`none of these faults fits here: ${among?.join(', ')}`);
  const random = new Random(`${seed}:${round}`);
  return Array.from({ length: faults }, (_, i) => {
    const fault = cards[(round * faults + i) % cards.length]!;
    const atMs = Math.round(((i + random.next()) * forMs) / faults);
    return { atMs, fault, dose: faultNamed(fault).choose(random, fitness) };
  });
};

/** One line for each, for a person. */
export const scheduleText = (schedule: Schedule): string =>
  schedule
    .map(
      ({ atMs, fault, dose }) =>
        `${`+${atMs} ms`.padStart(9)}  ${fault}: ${faultNamed(fault).describe(dose)}`,
    )
    .join('\n');
