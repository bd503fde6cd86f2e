import { describe, expect, it } from 'vitest';
import { jain, median, percentile } from './statistics.js';

describe('statistics of the benchmark', () => {
  it('takes the middle value, and of an even number the mean of the two in the middle', () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });

  it("gives Jain's index: 1 when all got the same, 1/n when one got everything", () => {
    expect(jain([3, 3, 3, 3])).toBe(1);
    expect(jain([0, 8, 0, 0])).toBe(0.25);
  });

  it('returns the value below which the given percentage of values are, and a single value itself', () => {
    const sorted = Array.from({ length: 100 }, (_none, n) => n);
    expect([percentile(sorted, 50), percentile(sorted, 99), percentile([7], 99)]).toEqual([50, 99, 7]);
  });
});
