import { expect, it } from '@jest/globals';

it('has no Symbol.asyncDispose', () => {
  expect('asyncDispose' in Symbol).toBe(false);
});
