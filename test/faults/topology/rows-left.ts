import { processOfOwner } from '../../support/owners.js';
import { until } from '../../support/async.js';
import { labNow } from '../history/lab-clock.js';
import { LONGEST_LEASE_MS } from '../settings.js';
import type { KeptHolds } from './kept-holds.js';
import type { Topology } from './topology.js';

/** How much longer a hold may be there than its lease: for a statement that begins late. */
const LATE_MS = 200;

/** Writes down holds of living workers that have nothing to do, and holds that outlast every lease. */
export const writeRowsLeft = async (
  { seats, scribe }: Topology,
  keeper: KeptHolds,
  longestMs = LONGEST_LEASE_MS,
): Promise<void> => {
  const alive = new Map(seats.filter(({ isTaken }) => isTaken).map(({ life }) => [life.instance, life.name]));
  for (const { key, owner } of await keeper.holds()) {
    const process = alive.get(processOfOwner(owner));
    if (process) scribe.write({ type: 'left', at: labNow(), process, key, owner });
  }
  const none = async (): Promise<boolean> => (await keeper.holds()).length === 0;
  await until(none, { timeoutMs: longestMs + LATE_MS }).catch(() => undefined);
  const sizes = Object.fromEntries(
    (await keeper.holds()).map(({ key, owner }) => [`hold of ${owner} on ${key}`, 1]),
  );
  scribe.write({ type: 'usage', at: labNow(), process: keeper.shape, sizes });
};
