import { describe, expect, it } from 'vitest';
import { Fairness } from '../../../lib/core/wait/fairness.js';
import type { Runtime } from '../../../lib/core/util/runtime.js';

/** A process with several holds. Its fairness is told of releases, or asked, at a time and after a number of wake-ups. */
const process = () => {
  let now = 0;
  const queue = { wakeUps: 0, lookAgain: () => undefined, holdEnds: () => undefined };
  const fairness = new Fairness(queue, { now: () => now } as Runtime);
  const at = (ms: number, wakeUps: number): Fairness => {
    now = ms;
    queue.wakeUps = wakeUps;
    return fairness;
  };
  return {
    releaseSent: (ms: number, wakeUps: number) => at(ms, wakeUps).releaseSent(),
    releaseOver: (ms: number, wakeUps: number, others: boolean) => at(ms, wakeUps).releaseOver(others),
    until: (ms: number, wakeUps: number) => at(ms, wakeUps).asideUntil,
  };
};

/** After a turn of a process with several holds: it has just given one back, at 60 ms, and others wait. */
const afterBatch = () => {
  const fairness = process();
  fairness.releaseOver(0, 0, true);
  fairness.releaseSent(60, 10);
  fairness.releaseOver(61, 11, true);
  return fairness;
};

describe('a process that has several holds', () => {
  it('lets others go first for 25 ms, or until another process gives one back', () => {
    expect(afterBatch().until(61, 11)).toBe(85);
    expect(afterBatch().until(85, 11)).toBe(undefined);
    expect(afterBatch().until(62, 12)).toBe(undefined);
  });

  it('goes on doing so when it gives back more of its own', () => {
    const fairness = afterBatch();
    fairness.releaseSent(62, 11);
    fairness.releaseOver(63, 12, true);
    expect(fairness.until(63, 12)).toBe(85);
    expect(fairness.until(64, 13)).toBe(undefined);
  });

  it('has its next turn before it does so again', () => {
    const fairness = afterBatch();
    fairness.releaseSent(90, 12);
    fairness.releaseOver(91, 13, true);
    fairness.releaseSent(140, 14);
    expect(fairness.until(140, 14)).toBe(undefined);
    fairness.releaseSent(141, 15);
    expect(fairness.until(141, 15)).toBe(166);
  });

  it('is not needed when no other process waits', () => {
    const fairness = afterBatch();
    fairness.releaseOver(62, 11, false);
    expect(fairness.until(62, 11)).toBe(undefined);
    fairness.releaseSent(200, 12);
    expect(fairness.until(200, 12)).toBe(undefined);
  });
});
