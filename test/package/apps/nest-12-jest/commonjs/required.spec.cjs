// Nest alone comes first: what Jest can load of Nest decides what it can load of a library for Nest.
it('Nest is required', () => {
  expect(require('@nestjs/common').Injectable).toBeInstanceOf(Function);
});

it('the library is required', async () => {
  const { currentLease, LockService } = require('nest-redis-lock');
  const { createTestingLocks } = require('nest-redis-lock/testing');
  const locks = createTestingLocks();
  expect(locks).toBeInstanceOf(LockService);
  expect(await locks.withLock('order:ada', () => currentLease().key)).toBe('order:ada');
});

it('the subpaths without Nest are required', () => {
  const { RedisStore } = require('nest-redis-lock/redis');
  const { StoreFailure } = require('nest-redis-lock/store');
  expect([RedisStore.name, StoreFailure.name]).toEqual(['RedisStore', 'StoreFailure']);
});
