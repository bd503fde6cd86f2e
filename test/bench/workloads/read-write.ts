import { rowOf } from '../comparison.js';
import { BY_HAND, libraries, type Contender } from '../contenders.js';
import { sharedOf } from './shared.js';

const READ_WRITE: Contender = { ...BY_HAND, name: 'nest-redis-lock, read-write', style: 'read-write' };

/** No peer for Node has a lock that readers share: with these, readers are alone, too. */
const ALONE = ['redis-semaphore', 'redlock-universal'];

export const readWrite = sharedOf({
  name: 'read-write',
  what: 'one writer and seven readers in each',
  shows:
    'How many sections there are for each second when readers may be together, and whether writers still get their turns. ' +
    'Beside it the exclusive lock and those of peers, which have no other, with the same callers.',
  doesNotShow:
    'Redisson, which has such a lock: it runs in a JVM. `npm run test:interop` runs both on one server.',
  shared: { writers: 1 },
  contenders: [
    READ_WRITE,
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
