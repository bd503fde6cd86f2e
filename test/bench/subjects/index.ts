import type { Subject } from './subject.js';

/**
 * All subjects. A new one is a file beside this one, and a line here. Each is loaded only where it is used: a process
 * has in it what its subject needs and nothing else.
 */
const subjects: Readonly<Record<string, () => Promise<Subject>>> = {
  floor: async () => (await import('./floor.js')).floor,
  'nest-redis-lock': async () => (await import('./nest-redis-lock.js')).nestRedisLock,
  redlock: async () => (await import('./redlock.js')).redlock,
  '@sesamecare-oss/redlock': async () => (await import('./sesamecare-redlock.js')).sesamecareRedlock,
  'redis-semaphore': async () => (await import('./redis-semaphore.js')).redisSemaphore,
  'redlock-universal': async () => (await import('./redlock-universal.js')).redlockUniversal,
  'node-redisson': async () => (await import('./node-redisson.js')).nodeRedisson,
  murlock: async () => (await import('./murlock.js')).murlock,
  'mysql-by-hand': async () => (await import('./mysql-by-hand.js')).mysqlByHand,
  'postgres-by-hand': async () => (await import('./postgres-by-hand.js')).postgresByHand,
  'zookeeper-floor': async () => (await import('./zookeeper-floor.js')).zookeeperFloor,
  '@nestjs-redis/lock': async () => (await import('./nestjs-redis.js')).nestjsRedis,
};

export const subjectNamed = (name: string): Promise<Subject> => {
  const load = subjects[name];
  if (!load) throw new Error(`no subject "${name}"; there are ${Object.keys(subjects).join(', ')}`);
  return load();
};
