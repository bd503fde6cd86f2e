import { comesToACrowd } from '../../faults/directed/crowd.js';
import { holder, KEY } from '../../faults/directed/tasks.js';
import type { Task } from '../../faults/workload/task.js';
import type { Mistake } from '../mistake.js';

const inside = (pauseMs: number): Task => ({
  style: 'withLock',
  keys: [KEY],
  waitMs: 3_000,
  steps: [{ do: 'write', key: KEY, pauseMs }],
});

/** Mistakes in passing a hold on to the next caller of a process. */
export const HAND_OFF_MISTAKES: readonly Mistake[] = [
  {
    name: 'a hold handed to an aborted waiter',
    edits: [
      {
        in: 'LocalQueue.waitsNoMore',
        find: 'this.waiters.delete(waiter);\n    this.host.slowWaits.end(waiter.wait);',
        replace: 'if (!waiter.wait.signal?.aborted) this.waiters.delete(waiter);',
      },
    ],
    simulation: { rules: ['promptness', 'leftovers', 'waiting'] },
    laboratory: {
      rules: ['leftovers', 'ghosts', 'promptness'],
      async play(stage) {
        const aborted: Task = { ...inside(0), style: 'acquire', abortAfterMs: 250 };
        await comesToACrowd(stage, holder('A'), [aborted, inside(0)]);
        await stage.one.notified('A has it');
        // The one that goes away does so while A has it.
        await stage.perform(stage.one, { ...aborted, keys: ['another'], steps: [{ do: 'pause', ms: 300 }] });
        stage.one.go('A ends');
      },
    },
  },
  {
    name: 'a turn that never ends',
    edits: [{ in: 'handedOffFrom', find: '|| now >= batch.until', replace: '' }],
    simulation: { rules: ['hand-off batch'] },
    laboratory: {
      rules: ['hand-off batch'],
      async play(stage) {
        const others = Array.from({ length: 8 }, () => inside(30));
        await comesToACrowd(stage, inside(30), others);
        stage.start(stage.two, inside(1));
        await stage.done();
      },
    },
  },
  {
    name: 'a token used twice',
    edits: [
      { in: 'handedOffFrom', find: 'if (batch.nextToken !== undefined) batch.nextToken++;', replace: '' },
    ],
    simulation: { rules: ['tokens'] },
    laboratory: {
      rules: ['tokens'],
      async play(stage) {
        await comesToACrowd(stage, inside(1), [inside(1), inside(1), inside(1)]);
        await stage.done();
      },
    },
  },
  {
    name: 'more leases than tokens',
    edits: [{ in: 'handedOffFrom', find: 'batch.leasesLeft === 0 ||', replace: '' }],
    simulation: { rules: ['tokens'] },
  },
];
