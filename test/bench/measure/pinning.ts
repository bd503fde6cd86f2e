import { spawnSync } from 'node:child_process';
import { cpus } from 'node:os';

const run = (cpuList: string, pid: number): boolean =>
  spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cpuList, String(pid)]).status === 0;

/**
 * Puts Redis on one CPU and its clients on another, until it is disposed of. With one caller a lock is four wake-ups.
 * Whether they cross CPUs matters more than all that is compared, and the scheduler changes that every few slices.
 * Does nothing where there is one CPU, or no `taskset`.
 */
export const pinned = (
  server: number,
  others: readonly number[],
): Disposable & { readonly done: boolean } => {
  const count = cpus().length;
  const done = count > 1 && run('0', server) && others.every((pid) => run('1', pid));
  return {
    done,
    [Symbol.dispose]: () => {
      if (count > 1) for (const pid of [server, ...others]) run(`0-${count - 1}`, pid);
    },
  };
};
