import { describe, expect, it } from 'vitest';
import type { LoadResult, Noted } from '../processes/load.js';
import { handOvers, lengthsOf, shareInTurn } from './turns.js';

const ranWith = (...processes: readonly (readonly Noted[])[]) => ({
  results: processes.map((times) => ({ times }) as unknown as LoadResult),
});

/** Processes one after the other, with sections of 2 ms and 1 ms between them. */
const inOrder = (...order: readonly number[]) => {
  const times: Noted[][] = [[], [], []];
  order.forEach((process, i) => times[process]!.push([3 * i, 3 * i + 2]));
  return ranWith(...times);
};

describe('the turns of processes', () => {
  it('take as long as the key was free on its way to another process', () => {
    const ran = ranWith(
      [
        [0, 2],
        [2.5, 4],
        [20, 22],
      ],
      [[9, 11]],
    );
    expect(handOvers(ran)).toEqual([5, 9]);
    expect(lengthsOf(ran)).toEqual([1.5, 2, 2, 2]);
  });

  it('are in order when each caller comes after all others', () => {
    expect(shareInTurn(inOrder(0, 1, 2, 0, 1, 2, 0), 3)).toBe(1);
    expect(shareInTurn(inOrder(0, 0, 1, 0, 0, 1), 3)).toBe(1);
  });

  it('are out of order when a caller comes again before another one', () => {
    expect(shareInTurn(inOrder(0, 1, 2, 0, 1, 0, 2), 3)).toBe(0.5);
  });

  it('are in no order yet when callers had one turn each', () => {
    expect(shareInTurn(inOrder(0, 1, 2), 3)).toBeUndefined();
  });
});
