import type { Mistake } from '../mistake.js';

/** Mistakes that only a lock with several owners can show. */
export const PERMIT_MISTAKES: readonly Mistake[] = [
  {
    name: 'one permit too many',
    edits: [
      {
        in: 'PERMIT_ACQUIRE',
        find: 'local granted = lives or left >= 1',
        replace: 'local granted = lives or left >= 0',
      },
      { in: 'PermitHolds.acquire', find: 'free >= 1', replace: 'free >= 0' },
    ],
    simulation: { rules: ['limit'] },
  },
  {
    name: 'an undo that adds a permit',
    edits: [
      {
        in: 'PERMIT_RELEASE',
        find: 'if not score then return -1 end',
        replace: "if not score then redis.call('incrby', KEYS[1], 1) return -1 end",
      },
      {
        in: 'PermitHolds.release',
        find: 'if (!permits?.taken.has(owner)) return false;',
        replace: 'if (!permits?.taken.has(owner)) { if (permits) permits.limit++; return false; }',
      },
    ],
    simulation: { rules: ['limit'] },
  },
  {
    name: 'a permit whose time is over never counted back',
    edits: [
      {
        in: 'PERMIT_ACQUIRE',
        find: "local ended = redis.call('zrangebyscore', KEYS[2], 0, whole(now))",
        replace: 'local ended = {}',
      },
      {
        in: 'PermitHolds.find',
        find: 'if (left(own, now) <= 0) permits.taken.delete(owner);',
        replace: '{}',
      },
    ],
    simulation: { rules: ['dead key', 'promptness'] },
  },
  {
    name: 'a permit given back that tells nobody',
    edits: [
      {
        in: 'PERMIT_RELEASE',
        find: 'if free then told = redis.call(ARGV[3], ARGV[2], whole(free + 1)) end',
        replace: '',
      },
      { in: 'PermitHolds.release', find: 'this.notify(finalKey);', replace: '' },
    ],
    simulation: { rules: ['promptness'] },
  },
  {
    name: 'a caller with a permit stays at the head of the queue',
    edits: [{ in: 'Contention.accept', find: 'if (!alone) queue.leave(false);', replace: '' }],
    simulation: { rules: ['promptness', 'waiting', 'leftovers'] },
  },
];
