import type { Recorder } from './recorder.js';

const LOOK_EVERY_MS = 5;
/** A timer that is later than this tells that the process did not run. */
const LATE_MS = 5;

/** Writes down when the process stood still: stopped, blocked, or without a processor. */
export const logStandstills = (recorder: Recorder, now: () => number): (() => void) => {
  let expected = now() + LOOK_EVERY_MS;
  const timer = setInterval(() => {
    const until = now();
    if (until - expected > LATE_MS) recorder.writeSpan({ type: 'frozen', at: expected, until });
    expected = until + LOOK_EVERY_MS;
  }, LOOK_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
};
