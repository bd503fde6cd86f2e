import { rowOf } from '../comparison.js';
import { BY_HAND, libraries, READ_WRITE } from '../contenders.js';
import { redissonBy, sharedOf } from './shared.js';

const REDISSON = redissonBy('Redisson, RReadWriteLock', 'readWrite', true);

/** No peer for Node has a lock that readers share: with these, readers are alone, too. */
const ALONE = ['redis-semaphore', 'redlock-universal'];

export const readWrite = sharedOf({
  name: 'read-write',
  what: 'one writer and seven readers in each',
  shows:
    'How many sections there are for each second when readers may be together, and whether writers still get their turns. ' +
    'Beside it Redisson, whose callers are threads of Java, and the exclusive lock and those of peers for Node, which have no other, ' +
    'with the same callers.',
  doesNotShow:
    'Node beside Redisson on one name: see `npm run test:interop`. Work takes 2 ms of Java’s timer there and of that of Node here.',
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
