import { labNow } from '../history/lab-clock.js';
import type { Topology } from '../topology/topology.js';

/** Everybody is in trouble from now until so long after the fault, which may take longer than planned. */
export const duringOutage = async (
  { scribe }: Topology,
  what: string,
  aftermathMs: number,
  outage: () => Promise<void>,
): Promise<void> => {
  const from = labNow();
  try {
    await outage();
  } finally {
    scribe.trouble(what, from, labNow() + aftermathMs);
  }
};
