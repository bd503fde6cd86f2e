import { setTimeout as sleep } from 'node:timers/promises';
import { faultNamed } from '../catalogue/index.js';
import { labNow } from '../history/lab-clock.js';
import type { Topology } from '../topology/topology.js';
import type { Planned, Schedule } from './schedule.js';

/** When a fault really was, on the clock of the history. */
export interface Inflicted {
  readonly planned: Planned;
  readonly from: number;
  readonly to: number;
}

/**
 * Inflicts the faults of a schedule, each at its time, or as soon as what it acts on is done with an earlier one.
 * Resolves when all are over.
 */
export const conduct = async (topology: Topology, schedule: Schedule): Promise<Inflicted[]> => {
  const begin = labNow();
  const busy = new Map<string, Promise<unknown>>();
  const inflict = async (planned: Planned): Promise<Inflicted> => {
    const { atMs, fault: name, dose } = planned;
    const fault = faultNamed(name);
    const targets = fault.targets(dose);
    const before = targets.map((target) => busy.get(target));
    const over = (async () => {
      await Promise.all([sleep(Math.max(0, begin + atMs - labNow())), ...before]);
      const from = labNow();
      topology.scribe.note(`FAULT ${name}: ${fault.describe(dose)}`);
      await fault.inflict(topology, dose);
      return { planned, from, to: labNow() };
    })();
    for (const target of targets) busy.set(target, over);
    return over;
  };
  // What fails, fails when all are over: whatever goes on would open again what is closed after it.
  const over = await Promise.allSettled(schedule.map(inflict));
  return over.map((one) => {
    if (one.status === 'rejected') throw one.reason;
    return one.value;
  });
};
