import { rowOf } from '../comparison.js';
import { BY_HAND, SEMAPHORE, type Contender } from '../contenders.js';
import { PERMITS } from '../subjects/subject.js';
import { redissonBy, sharedOf } from './shared.js';

const PERMIT: Contender = { ...BY_HAND, name: 'nest-redis-lock, withPermit', style: 'withPermit' };
const PEER: Contender = {
  name: 'redis-semaphore',
  subject: 'redis-semaphore',
  style: 'semaphore',
  renews: true,
};
const REDISSON = redissonBy('Redisson, RSemaphore', 'semaphore', false);
const EXPIRABLE = redissonBy('Redisson, RPermitExpirableSemaphore', 'permits', false);

export const semaphore = sharedOf({
  name: 'semaphore',
  what: `eight in each, ${PERMITS} at once`,
  shows:
    'How many permits are in use, how evenly callers get them, and their cost. Permits of `withPermit` and redis-semaphore ' +
    'expire when their process dies; permits of `semaphore` and `RSemaphore` do not. Callers of Redisson ' +
    'are threads of Java; they acquire permits without a lease here.',
  doesNotShow:
    'Node beside Redisson on one name: see `npm run test:interop`. The 2 ms of work are a timer of Java there, and a timer of Node here.',
  shared: { atOnce: PERMITS },
  contenders: [SEMAPHORE, REDISSON, PERMIT, EXPIRABLE, PEER],
  findings(comparison) {
    const unserved = (name: string): readonly number[] => rowOf(comparison, name)?.values['unserved'] ?? [];
    return [SEMAPHORE, PERMIT].map(({ name, style }) => ({
      what: `${style}: callers never served`,
      values: unserved(name),
      unit: '',
      target: { atMost: 0 },
    }));
  },
});
