import { processOfOwner } from '../../support/owners.js';
import { violationsIn } from '../../checker/checker.js';
import { inOrder, type HistoryEvent } from '../../checker/history.js';
import { Past } from '../../checker/past.js';
import type { Violation } from '../../checker/violation.js';
import type { Shape } from '../topology/topology.js';
import { applies } from './applied.js';
import { ghosts } from './ghosts.rule.js';
import { LAB_EXPECTATIONS } from './expectations.js';
import { availability } from './availability.rule.js';
import { withForced } from './forced-open.js';
import { withoutLostObjects } from './lost-objects.js';
import { recovery, type Calm } from './recovery.rule.js';
import { waiters } from './waiters.rule.js';

export interface Circumstances {
  readonly shape: Shape;
  /** What the owners of each process's holds begin with. */
  readonly instances: ReadonlyMap<string, string>;
  /** The lease that the watchdog of each worker renews. */
  readonly watchdogMs: number;
  /** Undefined for a schedule without calm times. */
  readonly calm?: Calm;
  /** Nothing was done that a caller may hear of. */
  readonly isQuiet?: boolean;
}

/** All that is wrong in a history, first things first. */
export const judge = (
  written: readonly HistoryEvent[],
  { shape, instances, watchdogMs, calm, isQuiet }: Circumstances,
): Violation[] => {
  const events = shape === 'one' ? written : withForced(withoutLostObjects(written));
  const past = new Past(inOrder(events));
  // The name of a permit does not tell whose it is.
  const askers = new Map(
    past.requests.flatMap(({ owners = [], process }) => owners.map((owner) => [owner, process] as const)),
  );
  const processOf = (owner: string) => askers.get(owner) ?? instances.get(processOfOwner(owner));
  const found = [
    ...violationsIn(events, { ...LAB_EXPECTATIONS, provisionalLeaseMs: watchdogMs / 3 }),
    ...ghosts(past, processOf),
    ...waiters(past),
    ...(calm ? recovery(past, calm) : []),
    ...(isQuiet ? availability(past) : []),
  ];
  return found.filter(({ rule }) => applies(rule, shape)).sort((a, b) => a.at - b.at);
};
