import { describeShortRounds } from './single-rounds.js';

/** A short round on each topology of Redis, in `.ci/run`. */
describeShortRounds('each-topology.spec.ts', {
  'quorum of 3, with AOF': ['SIGKILL Redis, data kept', 'client cut off from a minority', 'SIGKILL worker'],
  Sentinel: ['promotion', 'SIGSTOP worker'],
  Cluster: ['a master is killed', 'slot moves'],
});
