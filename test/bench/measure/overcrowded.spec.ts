import { describe, expect, it } from 'vitest';
import type { Noted } from '../processes/load.js';
import { overcrowded } from './overcrowded.js';

describe('sections that may be together', () => {
  it('are too many when one more is inside than there may be', () => {
    const times: Noted[] = [
      [0, 10, 'write'],
      [5, 15, 'write'],
      [10, 20, 'write'],
      [12, 14, 'write'],
    ];
    expect(overcrowded(times, { atOnce: 2 })).toBe(1);
    expect(overcrowded(times, { atOnce: 3 })).toBe(0);
    expect(overcrowded(times.toReversed(), { atOnce: 1 })).toBe(3);
  });

  it('are readers with readers, and a writer is alone', () => {
    const readers: Noted[] = [
      [0, 10, 'read'],
      [1, 9, 'read'],
    ];
    expect(overcrowded(readers, { writers: 1 })).toBe(0);
    expect(overcrowded([...readers, [9, 12, 'write']], { writers: 1 })).toBe(1);
    expect(overcrowded([...readers, [10, 12, 'write']], { writers: 1 })).toBe(0);
    expect(
      overcrowded(
        [
          [0, 5, 'write'],
          [4, 6, 'read'],
          [5, 7, 'write'],
        ],
        { writers: 1 },
      ),
    ).toBe(2);
  });
});
