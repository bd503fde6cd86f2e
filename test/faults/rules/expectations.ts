import { EXPECTATIONS, type Expectations } from '../../checker/expectations.js';

/** The numbers by which real processes on a machine with few processors are judged. */
export const LAB_EXPECTATIONS: Expectations = {
  ...EXPECTATIONS,
  // A server counts leases in whole ms: a hold may outlive its recorded end by 1 ms. Under load its clock is known to 0.5 ms.
  overlapMs: 5,
  clocksMs: 2,
  sendingMs: 20,
  // Real processes take turns on few processors. Who is woken by a release is there within this time; who is not
  // waits for the rest of a lease, or for a time-out, which is longer.
  promptMs: 200,
  // Timers of a process that has to wait for a processor are late.
  batchMs: 100,
  // Once a second, by a timer that may be late.
  keepingMs: 1_100,
};
