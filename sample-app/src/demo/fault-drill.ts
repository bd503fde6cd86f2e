import { setTimeout as sleep } from 'node:timers/promises';
import type { Part } from './parts.js';

export interface FaultOptions {
  readonly instances: readonly Part[];
  /** The owner of the lock's hold in Redis; undefined when nobody holds it. */
  readonly owner: (key: string) => Promise<string | undefined>;
  /** How many writes the database has refused so far. */
  readonly staleWritesRefused: () => Promise<number>;
  /** How much of the stock is sold, from 0 to 1. */
  readonly soldShare: () => number;
  readonly onEvent: (text: string) => void;
  /** Ends the drill. */
  readonly signal: AbortSignal;
}

/** How many instances were killed and stopped while they held the lock. */
export interface FaultReport {
  readonly killed: number;
  readonly stopped: number;
}

export const NO_FAULTS: FaultReport = { killed: 0, stopped: 0 };

const KILL_AT_SHARE = 0.2;
const STOP_AT_SHARE = 0.5;
const MAX_STOPS = 5;
const POLL_MS = 20;
/** An instance that goes on has written, or will not write, within this time. */
const STALE_WRITE_WITHIN_MS = 1_000;

/**
 * Does to instances what machines do to them, while they hold the lock, and reports what came about before the
 * signal ended it: kills one; stops one until another has taken the lock over, which is after the lease, then lets
 * it go on. Where it is stopped is left to chance, and not everywhere does a write follow, so stopping is repeated
 * until the database has refused one.
 */
export const rehearseFaults = async (options: FaultOptions): Promise<FaultReport> => {
  const { instances, soldShare, staleWritesRefused, onEvent, signal } = options;
  const done = { killed: 0, stopped: 0 };
  const until = async (condition: () => boolean | Promise<boolean>): Promise<void> => {
    while (!(await condition())) await sleep(POLL_MS, undefined, { signal });
  };
  try {
    await until(() => soldShare() >= KILL_AT_SHARE);
    const victim = await stopHolder(options);
    victim.instance.kill('SIGKILL');
    done.killed++;
    onEvent(`${victim.instance.name} killed while it held the lock`);

    await until(() => soldShare() >= STOP_AT_SHARE);
    while (done.stopped < MAX_STOPS && (await staleWritesRefused()) === 0) {
      const { instance, key, owner } = await stopHolder(options);
      onEvent(`${instance.name} stopped while it held the lock`);
      try {
        await until(async () => {
          const now = await options.owner(key);
          return now !== undefined && !now.startsWith(owner);
        });
      } finally {
        instance.kill('SIGCONT');
      }
      done.stopped++;
      onEvent(`${instance.name} goes on`);
      const deadline = performance.now() + STALE_WRITE_WITHIN_MS;
      await until(async () => (await staleWritesRefused()) > 0 || performance.now() > deadline);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    for (const instance of instances) instance.kill('SIGCONT');
  }
  return done;
};

/** An instance that is stopped and holds the lock. */
interface StoppedHolder {
  readonly instance: Part;
  readonly key: string;
  readonly owner: string;
}

/**
 * Stops an instance that says it got the lock, and asks Redis whether it still holds it; if not, lets it go on and
 * tries the next.
 */
const stopHolder = async (options: FaultOptions): Promise<StoppedHolder> => {
  const holds = async ({ key, owner }: StoppedHolder): Promise<boolean> =>
    (await options.owner(key))?.startsWith(owner) ?? false;
  for (;;) {
    const holder = await stopNextHolder(options);
    // Asked twice: a release that was under way when the instance stopped has arrived at the second time.
    if ((await holds(holder)) && (await holds(holder))) return holder;
    holder.instance.kill('SIGCONT');
  }
};

const stopNextHolder = ({ instances, signal }: FaultOptions): Promise<StoppedHolder> =>
  new Promise((resolve, reject) => {
    const listeners = instances.map((instance) =>
      instance.onMessage((message) => {
        if (message.type !== 'acquired') return;
        instance.kill('SIGSTOP');
        stopListening();
        resolve({ instance, key: message.key, owner: message.owner });
      }),
    );
    const onAbort = () => {
      stopListening();
      reject(signal.reason as Error);
    };
    const stopListening = () => {
      signal.removeEventListener('abort', onAbort);
      for (const off of listeners) off();
    };
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
  });
