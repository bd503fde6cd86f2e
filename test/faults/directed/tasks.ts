import type { Task } from '../workload/task.js';

export const KEY = 'key';

/** Takes the key, tells it, and keeps it until it is told to end. */
export const holder = (name: string, more: Partial<Task> = {}): Task => ({
  style: 'acquire',
  keys: [KEY],
  waitMs: 3_000,
  steps: [
    { do: 'notify', what: `${name} has it` },
    { do: 'wait', for: `${name} ends` },
  ],
  ...more,
});
