import { processOfOwner } from '../../support/owners.js';
import { violationsIn } from '../../checker/checker.js';
import { EXPECTATIONS, type Expectations } from '../../checker/expectations.js';
import { inOrder, type HistoryEvent } from '../../checker/history.js';
import { Past } from '../../checker/past.js';
import type { Violation } from '../../checker/violation.js';
import { ghosts } from './ghosts.rule.js';
import { recovery, type Calm } from './recovery.rule.js';

const LAB_EXPECTATIONS: Expectations = {
  ...EXPECTATIONS,
  // The server's clock is known to a few ms only, and it counts leases in whole ones.
  overlapMs: 5,
  clocksMs: 1,
  sendingMs: 20,
  // Real processes take turns on few processors. Who is woken by a release is there within this time; who is not
  // waits for the rest of a lease, or for a time-out, which is longer.
  promptMs: 200,
  // Timers of a process that has to wait for a processor are late.
  turnMs: 100,
  // Once a second, by a timer that may be late.
  keepingMs: 1_100,
};

export interface Circumstances {
  /** What the owners of each process's holds begin with. */
  readonly instances: ReadonlyMap<string, string>;
  /** The lease that the watchdog of each worker renews. */
  readonly watchdogMs: number;
  /** Undefined for a schedule without calm times. */
  readonly calm?: Calm;
}

/** All that is wrong in a history, first things first. */
export const judge = (
  events: readonly HistoryEvent[],
  { instances, watchdogMs, calm }: Circumstances,
): Violation[] => {
  const past = new Past(inOrder(events));
  // The name of a permit does not tell whose it is.
  const askers = new Map(
    past.requests.flatMap(({ owners = [], process }) => owners.map((owner) => [owner, process] as const)),
  );
  const processOf = (owner: string) => askers.get(owner) ?? instances.get(processOfOwner(owner));
  return [
    ...violationsIn(events, { ...LAB_EXPECTATIONS, firstLeaseMs: watchdogMs / 3 }),
    ...ghosts(past, processOf),
    ...(calm ? recovery(past, calm) : []),
  ].sort((a, b) => a.at - b.at);
};
