import { processOfOwner } from '../../support/owners.js';
import { until } from '../../support/async.js';
import { labNow } from '../history/lab-clock.js';
import { LONGEST_LEASE_MS } from '../settings.js';
import type { Database } from './database.js';
import type { Topology } from './topology.js';

/** How much longer a hold may be in the table than its lease: for a statement that begins late. */
const LATE_MS = 200;

/** Writes down holds of living workers that have nothing to do, and holds that outlast every lease. */
export const writeRowsLeft = async ({ seats, scribe }: Topology, database: Database): Promise<void> => {
  const alive = new Map(seats.filter(({ isTaken }) => isTaken).map(({ life }) => [life.instance, life.name]));
  for (const { key, owner } of await database.holds()) {
    const process = alive.get(processOfOwner(owner));
    if (process) scribe.write({ type: 'left', at: labNow(), process, key, owner });
  }
  const none = async (): Promise<boolean> => (await database.holds()).length === 0;
  await until(none, { timeoutMs: LONGEST_LEASE_MS + LATE_MS }).catch(() => undefined);
  const sizes = Object.fromEntries(
    (await database.holds()).map(({ key, owner }) => [`hold of ${owner} on ${key}`, 1]),
  );
  scribe.write({ type: 'usage', at: labNow(), process: database.shape, sizes });
};
