import type { LockService } from '../../../lib/nest/service/lock.service.js';

const TURNS = 120;
const WAIT = { waitMs: 20_000 };
/** Far more than a turn and a poll, and far less than a lease: a waiter that is not woken up waits for the lease. */
export const NOT_WOKEN_MS = 5_000;

interface Process {
  readonly locks: LockService;
  readonly callers: number;
}

/** Calls `work` in processes with some callers each, which acquire a key again and again. A turn is a series of one process. */
export const hotKey = async (key: string, processes: readonly Process[], work: () => Promise<unknown>) => {
  const locksOf = processes.map(() => 0);
  const gapsMs: number[] = [];
  let [releasedAt, last] = [0, 0];
  const call = async ({ locks }: Process, process: number): Promise<void> => {
    while (gapsMs.length < TURNS) {
      await locks.withLock(key, WAIT, async () => {
        if (last !== process) gapsMs.push(performance.now() - releasedAt);
        last = process;
        locksOf[process]! += 1;
        await work();
        releasedAt = performance.now();
      });
    }
  };
  await Promise.all(processes.flatMap((one, i) => Array.from({ length: one.callers }, () => call(one, i))));
  const sum = locksOf.reduce((a, b) => a + b);
  const jain = sum ** 2 / (locksOf.length * locksOf.reduce((a, b) => a + b ** 2, 0));
  return { jain, perTurn: sum / gapsMs.length, longestGapMs: Math.max(...gapsMs.slice(1)) };
};

/**
 * A process asks for a key always, without waiting, with two callers. Resolves with how often it goes first while the
 * other one waits, in the median of 20 turns: a machine that stands still costs a waiter its turn.
 */
export const greedyBeforeWaiter = async (
  key: string,
  greedy: LockService,
  waiter: LockService,
  work: () => Promise<unknown>,
): Promise<number> => {
  let [stopped, times] = [false, 0];
  const before: number[] = [];
  const ask = async (): Promise<void> => {
    while (!stopped) if ((await greedy.tryWithLock(key, work)).ran) times += 1;
  };
  const hasHad = async (more: number): Promise<void> => {
    for (const until = times + more; times < until;) await greedy.ping();
  };
  const asking = [ask(), ask()];
  try {
    for (let turn = 0; turn < 20; turn += 1) {
      await hasHad(1);
      const had = times;
      await waiter.withLock(key, WAIT, () => undefined);
      before.push(times - had);
    }
  } finally {
    stopped = true;
    await Promise.all(asking);
  }
  return before.sort((a, b) => a - b)[before.length >> 1]!;
};
