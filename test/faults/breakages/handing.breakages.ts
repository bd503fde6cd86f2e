import type { Task } from '../workload/task.js';
import type { Breakage } from './breakage.js';
import { comesToACrowd } from './crowd.js';
import { holder, KEY } from './tasks.js';

const inside = (pauseMs: number): Task => ({
  style: 'withLock',
  keys: [KEY],
  waitMs: 3_000,
  steps: [{ do: 'write', key: KEY, pauseMs }],
});

/** Mistakes in passing a hold on to the next caller of a process. */
export const HANDING_BREAKAGES: readonly Breakage[] = [
  {
    name: 'a hold handed to an aborted waiter',
    patches: [
      {
        file: 'core/key-queue.ts',
        find: 'const abort = (): void =>\n        waiter.refuse(',
        replace: 'const abort = (): void =>\n        reject(',
      },
    ],
    seenBy: ['leftovers', 'ghosts', 'promptness'],
    async play(stage) {
      const aborted: Task = { ...inside(0), style: 'acquire', abortAfterMs: 250 };
      await comesToACrowd(stage, holder('A'), [aborted, inside(0)]);
      await stage.one.told('A has it');
      // The one that goes away does so while A has it.
      await stage.perform(stage.one, { ...aborted, keys: ['another'], steps: [{ do: 'pause', ms: 300 }] });
      stage.one.go('A ends');
    },
  },
  {
    name: 'a turn that never ends',
    patches: [{ file: 'core/hand-over.ts', find: ' || now >= turn.until', replace: '' }],
    seenBy: ['turns'],
    async play(stage) {
      const others = Array.from({ length: 8 }, () => inside(30));
      await comesToACrowd(stage, inside(30), others);
      stage.start(stage.two, inside(1));
      await stage.done();
    },
  },
  {
    name: 'a token used twice',
    patches: [
      {
        file: 'core/hand-over.ts',
        find: 'if (turn.nextToken !== undefined) turn.nextToken++;',
        replace: '',
      },
    ],
    seenBy: ['tokens'],
    async play(stage) {
      await comesToACrowd(stage, inside(1), [inside(1), inside(1), inside(1)]);
      await stage.done();
    },
  },
];
