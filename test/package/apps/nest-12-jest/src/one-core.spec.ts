import { createRequire } from 'node:module';
import { expect, it } from '@jest/globals';
import { StoreFailure } from 'nest-redis-lock/store';

it('import and require load one core', () => {
  const required = createRequire(import.meta.url)('nest-redis-lock/store') as { StoreFailure: unknown };
  expect(required.StoreFailure).toBe(StoreFailure);
});
