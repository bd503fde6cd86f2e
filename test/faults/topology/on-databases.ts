import type { Fitness } from './topology.js';

/** What databases are fit for, with a clock that can be set or not. */
export const ON_DATABASES: readonly Fitness[] = [true, false].map((settableClock) => {
  const single = { shape: 'database', seats: 3, nodes: 1, sound: 1, links: 1, keepsData: true } as const;
  return { ...single, settableClock, faultyDisk: true };
});
