import { UNOBSERVED, type Course } from '../apps/apps.js';
import type { Topology } from '../topology/topology.js';

/** Inflicts a fault while apps are there, if the topology has any: each of them has to acquire a key again. */
export const withApps = (
  { apps, round }: Topology,
  what: string,
  group: number,
  work: (course: Course) => Promise<void>,
): Promise<void> => (apps ? apps.during({ what, group, round }, work) : work(UNOBSERVED));
