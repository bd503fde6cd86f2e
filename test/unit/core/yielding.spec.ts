import { describe, expect, it } from 'vitest';
import { Yielding } from '../../../lib/core/acquire/yielding.js';

/** After a turn of a process with several holds: it has just given one back, at 60 ms, and others wait. */
const afterBatch = (): Yielding => {
  const yielding = new Yielding();
  yielding.releaseReplied(0, 0, true);
  yielding.releaseSent(60, 10);
  yielding.releaseReplied(61, 11, true);
  return yielding;
};

describe('a process that has several holds', () => {
  it('lets others go first for 25 ms, or until another process gives one back', () => {
    expect(afterBatch().until(61, 11)).toBe(85);
    expect(afterBatch().until(85, 11)).toBe(undefined);
    expect(afterBatch().until(62, 12)).toBe(undefined);
  });

  it('goes on doing so when it gives back more of its own', () => {
    const yielding = afterBatch();
    yielding.releaseSent(62, 11);
    yielding.releaseReplied(63, 12, true);
    expect(yielding.until(63, 12)).toBe(85);
    expect(yielding.until(64, 13)).toBe(undefined);
  });

  it('has its next turn before it does so again', () => {
    const yielding = afterBatch();
    yielding.releaseSent(90, 12);
    yielding.releaseReplied(91, 13, true);
    yielding.releaseSent(140, 14);
    expect(yielding.until(140, 14)).toBe(undefined);
    yielding.releaseSent(141, 15);
    expect(yielding.until(141, 15)).toBe(166);
  });

  it('is not needed when no other process waits', () => {
    const yielding = afterBatch();
    yielding.releaseReplied(62, 11, false);
    expect(yielding.until(62, 11)).toBe(undefined);
    yielding.releaseSent(200, 12);
    expect(yielding.until(200, 12)).toBe(undefined);
  });
});
