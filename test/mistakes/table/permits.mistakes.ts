import { setTimeout as sleep } from 'node:timers/promises';
import { permitsKey, type Task } from '../../faults/workload/task.js';
import type { Mistake } from '../mistake.js';

const ONE = permitsKey(1);

/** Takes the only permit, tells it, and keeps it until it is told to end. */
const permitHolder = (name: string, more: Partial<Task> = {}): Task => ({
  style: 'acquirePermit',
  keys: [ONE],
  permits: 1,
  waitMs: 3_000,
  steps: [
    { do: 'notify', what: `${name} has it` },
    { do: 'wait', for: `${name} ends` },
  ],
  ...more,
});

/** Comes for a moment, and does not wait. */
const passerBy: Task = {
  style: 'tryAcquirePermit',
  keys: [ONE],
  permits: 1,
  waitMs: 0,
  steps: [{ do: 'pause', ms: 50 }],
};

/** Mistakes that only a lock with several owners can show. */
export const PERMIT_MISTAKES: readonly Mistake[] = [
  {
    name: 'one permit too many',
    edits: [
      {
        in: 'PERMIT_ACQUIRE',
        find: 'local takes = not lives and left >= 1',
        replace: 'local takes = not lives and left >= 0',
      },
    ],
    simulation: { rules: ['limit'] },
    laboratory: {
      rules: ['limit'],
      async play(stage) {
        stage.start(stage.one, permitHolder('A'));
        await stage.one.notified('A has it');
        await stage.perform(stage.two, passerBy);
        stage.one.go('A ends');
      },
    },
  },
  {
    name: 'an undo that adds a permit',
    edits: [
      {
        in: 'PERMIT_RELEASE',
        find: 'if not score then return -1 end',
        replace: "if not score then redis.call('incrby', KEYS[1], 1) return -1 end",
      },
    ],
    simulation: { rules: ['limit'], atEachStep: 'permits' },
    laboratory: {
      rules: ['limit', 'leftovers'],
      async play(stage) {
        stage.start(stage.one, permitHolder('A', { leaseMs: 300 }));
        await stage.one.notified('A has it');
        stage.start(stage.two, permitHolder('B'));
        await stage.two.notified('B has it');
        stage.one.go('A ends');
        await sleep(50);
        await stage.perform(stage.one, { ...passerBy, permits: null });
        stage.two.go('B ends');
      },
    },
  },
  {
    name: 'a permit whose time is over never counted back',
    edits: [
      {
        in: 'PERMIT_ACQUIRE',
        find: "local ended = redis.call('zcount', KEYS[2], 0, whole(now))",
        replace: 'local ended = 0',
      },
    ],
    simulation: { rules: ['dead key', 'promptness'] },
  },
  {
    name: 'a permit given back that tells nobody',
    edits: [
      {
        in: 'PERMIT_RELEASE',
        find: 'local receivers = redis.call(ARGV[3], ARGV[2], whole((free or 0) + 1))',
        replace: 'local receivers = 0',
      },
    ],
    simulation: { rules: ['promptness'] },
    laboratory: {
      rules: ['promptness'],
      async play(stage) {
        stage.start(stage.one, permitHolder('A', { leaseMs: 5_000 }));
        await stage.one.notified('A has it');
        stage.start(stage.two, { ...passerBy, style: 'withPermit', waitMs: 1_500 });
        await stage.listenedTo(ONE);
        await sleep(100);
        stage.one.go('A ends');
      },
    },
  },
  {
    name: 'a caller with a permit stays at the head of the queue',
    edits: [{ in: 'LocalQueue.granted', find: 'if (isContender) this.leave();', replace: '' }],
    simulation: { rules: ['promptness', 'waiting', 'leftovers'] },
  },
];
