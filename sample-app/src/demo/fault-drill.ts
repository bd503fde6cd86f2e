import { setTimeout as sleep } from 'node:timers/promises';
import { stopHolder, type HolderOptions } from './faults/stop-holder.js';
import { letWrite, Writers, type Writer } from './faults/writers.js';
import type { Board } from './live/board.js';

export interface FaultOptions extends HolderOptions {
  readonly items: number;
  /** Resolves with the highest token that the database has seen. */
  readonly fence: () => Promise<number>;
  /** Returns the sold share of the stock, from 0 to 1. */
  readonly soldShare: () => number;
  readonly onEvent: (text: string) => void;
  /** Is told which of the instances was stopped, resumed and killed. */
  readonly board?: Pick<Board, 'stopped' | 'wentOn' | 'killed'>;
}

/** Number of instances that were killed and stopped while they held the lock. */
export interface FaultReport {
  readonly killed: number;
  readonly stopped: number;
}

export const NO_FAULTS: FaultReport = { killed: 0, stopped: 0 };

const STOP_AT_SHARE = 0.2;
const KILL_AT_SHARE = 0.5;
const POLL_MS = 20;

/**
 * Causes faults of instances that hold the lock and ask before they write, and reports those that happened before the
 * signal ended the drill. It stops one instance between its read and its write, until another one has acquired the lock and
 * has read. Then it lets the first one go on to its write, which is stale. Later it kills a holder of the lock, at whatever
 * step it is.
 */
export const rehearseFaults = async (options: FaultOptions): Promise<FaultReport> => {
  const { instances, items, soldShare, onEvent, board, signal } = options;
  const done = { killed: 0, stopped: 0 };
  const writers = new Writers();
  // For the whole sale: an instance also asks after the drill.
  for (const instance of instances) writers.add(instance);
  try {
    const writer = await writers.catch((left) => left <= items * (1 - STOP_AT_SHARE), signal);
    if (signal.aborted) letWrite(writer);
    signal.throwIfAborted();
    await stopWriter(writer, options);
    done.stopped++;

    await until(() => soldShare() >= KILL_AT_SHARE, signal);
    const { instance } = await stopHolder(options);
    instance.kill('SIGKILL');
    done.killed++;
    board?.killed(instances.indexOf(instance));
    onEvent(`${instance.name} killed while it held the lock`);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    for (const instance of instances) instance.kill('SIGCONT');
  }
  return done;
};

const until = async (condition: () => boolean | Promise<boolean>, signal?: AbortSignal): Promise<void> => {
  while (!(await condition())) await sleep(POLL_MS, undefined, { signal });
};

/**
 * Stops the instance that waits to write, until another one has acquired the lock after the lease, and has read. From
 * then on the database must reject the write.
 */
const stopWriter = async (
  writer: Writer,
  { instances, fence, onEvent, board, signal }: FaultOptions,
): Promise<void> => {
  const { instance, token, written } = writer;
  const index = instances.indexOf(instance);
  instance.kill('SIGSTOP');
  board?.stopped(index, token);
  onEvent(`${instance.name} stopped while it held the lock`);
  try {
    // There is at least one other caller for the lock: the buyer of this instance tries the next instance if this one
    // does not reply.
    await until(async () => signal.aborted || (await fence()) > token);
  } finally {
    instance.kill('SIGCONT');
  }
  board?.wentOn(index);
  onEvent(`${instance.name} goes on`);
  letWrite(writer);
  // Also after the end of the sale: the outcome of the write is part of the result.
  await until(() => written() || !instance.alive);
};
