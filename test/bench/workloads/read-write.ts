import { rowOf } from '../comparison.js';
import { BY_HAND, libraries, READ_WRITE } from '../contenders.js';
import { redissonBy, sharedOf } from './shared.js';

const REDISSON = redissonBy('Redisson, RReadWriteLock', 'readWrite', true);

/** No peer for Node has a lock that readers share: there a reader excludes other readers, too. */
const ALONE = ['redis-semaphore', 'redlock-universal'];

export const readWrite = sharedOf({
  name: 'read-write',
  what: 'one writer and seven readers in each',
  shows:
    'How many sections run per second when readers share the lock, and whether writers still get it. ' +
    'Redisson runs the same callers as threads of Java. Peers for Node have only an exclusive lock, so they are compared with that.',
  doesNotShow:
    'Node beside Redisson on one name: see `npm run test:interop`. The 2 ms of work are a timer of Java there, and a timer of Node here.',
  shared: { writers: 1 },
  contenders: [
    READ_WRITE,
    REDISSON,
    BY_HAND,
    ...libraries
      .filter(({ subject }) => ALONE.includes(subject))
      .map((peer) => (peer.subject === 'redlock-universal' ? { ...peer, style: 'using' } : peer)),
  ],
  findings(comparison) {
    const of = (metric: string): readonly number[] =>
      rowOf(comparison, READ_WRITE.name)?.values[metric] ?? [];
    return [
      { what: 'read-write: callers never served', values: of('unserved'), unit: '', target: { atMost: 0 } },
      { what: "read-write: Jain's index over writers", values: of('writers'), unit: 'ratio' },
    ];
  },
});
