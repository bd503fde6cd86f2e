// Both builds and both entry points, loaded in one go.
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
