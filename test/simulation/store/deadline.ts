import type { SimProcess } from '../engine/sim-process.js';

/** A timer that is this late, in ms, tells that the event loop stood still. */
const STOOD_STILL_MS = 50;

/** A command under way. Whoever settles it sets `done`. */
export interface InFlight {
  done: boolean;
}

/** Calls `onOverdue` when the command is not done in time. As in the Redis store, replies that lie waiting go first. */
export const withDeadline = (process: SimProcess, timeoutMs: number, onOverdue: () => void): InFlight => {
  const inFlight: InFlight = { done: false };
  const arm = (ms: number, patient: boolean): void => {
    const plannedAt = process.at + ms;
    const look = (): void => {
      if (inFlight.done) return;
      const lateMs = process.at - plannedAt;
      if (lateMs > STOOD_STILL_MS && !patient) return arm(Math.min(lateMs, timeoutMs), true);
      onOverdue();
    };
    process.setTimer(() => process.afterArrivals(look), ms);
  };
  arm(timeoutMs, false);
  return inFlight;
};
