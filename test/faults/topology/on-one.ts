import type { Fitness } from './topology.js';

/** What single servers are fit for, with their data on disk or not, and with a clock that can be set or not. */
export const ON_ONE: readonly Fitness[] = [true, false].flatMap((keepsData) =>
  [true, false].map((settableClock): Fitness => {
    return { shape: 'one', seats: 3, nodes: 1, sound: 1, links: 1, keepsData, settableClock };
  }),
);
