import type { DirectedStage } from '../../faults/directed/directed-stage.js';
import { holder, KEY } from '../../faults/directed/tasks.js';
import type { Task } from '../../faults/workload/task.js';
import type { Mistake } from '../mistake.js';

const FREE = ['free-1', 'free-2', 'free-3', 'free-4'];

const caller = (key: string): Task => ({
  style: 'tryAcquire',
  keys: [key],
  waitMs: 0,
  steps: [{ do: 'write', key, pauseMs: 30 }],
});

/** Several callers come at once; one of them wants what somebody in another process has. */
const comeAtOnce = async (stage: DirectedStage): Promise<void> => {
  stage.start(stage.two, holder('Z'));
  await stage.two.notified('Z has it');
  const [first, ...others] = FREE.map(caller);
  const tasks = [first!, caller(KEY), ...others];
  const steps: Task['steps'] = [{ do: 'nest', tasks }];
  // It orders before all of them.
  await stage.perform(stage.one, { style: 'withLock', keys: ['before'], waitMs: 1_000, steps });
  stage.two.go('Z ends');
};

/** Mistakes in sharing a request. */
export const SHARING_MISTAKES: readonly Mistake[] = [
  {
    name: 'answers of a shared request to others than those who asked',
    edits: [
      {
        in: 'SharedRuns.send',
        find: 'const result = replies[i];',
        replace: 'const result = replies[(i + 1) % runs.length];',
      },
    ],
    laboratory: {
      rules: ['exclusion', 'foundation', 'tokens', 'ghosts', 'leftovers'],
      play: comeAtOnce,
    },
  },
];
