import { describeShortRounds } from './single-rounds.js';

/**
 * A short round on each store. `.ci/run` has each topology of Redis, `npm run test:laboratory` all faults, and `npm run
 * test:faults` many rounds.
 */
describeShortRounds('each-store.spec.ts', {
  'with AOF': ['SIGSTOP Redis', 'cut', 'blocked event loop'],
  MySQL: ['SIGKILL database', 'rows locked', 'swallow reply'],
  PostgreSQL: ['SIGKILL database', 'rows locked', 'half-open'],
  ZooKeeper: ['leader killed', 'client cut off beyond its session'],
});
