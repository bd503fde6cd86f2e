import { rowOf } from '../comparison.js';
import { BY_HAND, type Contender } from '../contenders.js';
import { PERMITS } from '../subjects/subject.js';
import { sharedOf } from './shared.js';

const SEMAPHORE: Contender = {
  ...BY_HAND,
  name: 'nest-redis-lock, semaphore',
  style: 'semaphore',
  renews: false,
};
const PERMIT: Contender = { ...BY_HAND, name: 'nest-redis-lock, withPermit', style: 'withPermit' };
const PEER: Contender = {
  name: 'redis-semaphore',
  subject: 'redis-semaphore',
  style: 'semaphore',
  renews: true,
};

export const semaphore = sharedOf({
  name: 'semaphore',
  what: `eight in each, ${PERMITS} at once`,
  shows:
    'How many of the permits are at work, how evenly callers get them, and what that takes. Those of `withPermit` and of ' +
    'redis-semaphore end by themselves when their process dies, those of `semaphore` do not.',
  doesNotShow:
    'Redisson, which has such semaphores: it runs in a JVM. `npm run test:interop` runs both on one server.',
  shared: { atOnce: PERMITS },
  contenders: [SEMAPHORE, PERMIT, PEER],
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
