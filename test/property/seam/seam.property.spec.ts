import { expect, it } from 'vitest';
import { STORES, STORES_IN_MEMORY } from '../../support/stores/stores.js';
import { describeSeam, WORLDS } from './seam.property.js';

it('every store under contract has a world of its own here', () => {
  expect(Object.keys(WORLDS).sort()).toEqual(STORES.map(({ name }) => name).sort());
});

describeSeam(STORES_IN_MEMORY);
