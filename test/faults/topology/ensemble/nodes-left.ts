import { until } from '../../../support/async.js';
import { labNow } from '../../history/lab-clock.js';
import { SESSION_MS } from '../../settings.js';
import { writeRowsLeft } from '../rows-left.js';
import type { Topology } from '../topology.js';
import type { Ensemble } from './ensemble.js';

/** Servers look for sessions that have ended once a tick. After an election, the time-out of all begins again. */
const LATE_MS = 1_000;

/** Writes down nodes, watches and sessions of processes that are gone or have nothing to do. */
export const writeNodesLeft = async (topology: Topology, ensemble: Ensemble): Promise<void> => {
  await writeRowsLeft(topology, ensemble, SESSION_MS + LATE_MS);
  const alive = topology.seats.filter(({ isTaken }) => isTaken).length;
  const sizes = async () => ({
    watches: await ensemble.watches(),
    sessions: (await ensemble.sessions()) - alive,
  });
  const none = async (): Promise<boolean> => Object.values(await sizes()).every((size) => size === 0);
  // Of a session that a client has never heard of, only its time-out is known.
  await until(none, { timeoutMs: SESSION_MS + LATE_MS }).catch(() => undefined);
  topology.scribe.write({ type: 'usage', at: labNow(), process: ensemble.shape, sizes: await sizes() });
};
