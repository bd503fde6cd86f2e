// Both builds and both entry points, loaded in one go. Nest comes first: Node 24 cannot require an ES module that is
// being imported, and the dependency requires Nest.
import '@nestjs/common';
import '@nestjs/core';

const [esm, { lib: cjs }, testing] = await Promise.all([
  import('nest-redis-lock'),
  import('billing'),
  import('nest-redis-lock/testing'),
]);
console.log(
  JSON.stringify({
    twoBuilds: esm.RedisLockModule !== cjs.RedisLockModule,
    oneService: esm.LockService === cjs.LockService,
    testing: typeof testing.createTestingLocks().withLock,
  }),
);
