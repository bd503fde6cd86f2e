import type { Task } from '../workload/task.js';
import type { DirectedStage } from './directed-stage.js';
import { holder, KEY } from './tasks.js';

/** The lock comes to the first worker while several of its callers wait: the first of them, then the others. */
export const comesToACrowd = async (
  stage: DirectedStage,
  first: Task,
  others: readonly Task[],
): Promise<void> => {
  stage.start(stage.two, holder('Z'));
  await stage.two.notified('Z has it');
  const requested = stage.requesting(stage.one, 'acquire');
  stage.start(stage.one, first);
  await requested;
  for (const other of others) stage.start(stage.one, other);
  await stage.listenedTo(KEY);
  stage.two.go('Z ends');
};
