import { expect } from 'vitest';

/** Gives the error of a class with which something is refused at once. */
export const refusedWith =
  <E extends Error>(kind: new (...args: never[]) => E) =>
  (action: () => unknown): E => {
    try {
      action();
    } catch (error) {
      expect(error).toBeInstanceOf(kind);
      return error as E;
    }
    throw new Error('nothing was refused');
  };
