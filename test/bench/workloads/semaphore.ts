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
    'How many of the permits are at work, how evenly callers get them, and what that takes. Those of `withPermit` and of ' +
    'redis-semaphore end by themselves when their process dies, those of `semaphore` and `RSemaphore` do not. Callers of Redisson ' +
    'are threads of Java; its permits are asked for without a lease here.',
  doesNotShow:
    'Node beside Redisson on one name: see `npm run test:interop`. Work takes 2 ms of Java’s timer there and of that of Node here.',
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
