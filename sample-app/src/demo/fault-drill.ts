import { setTimeout as sleep } from 'node:timers/promises';
import type { Acquired } from './part-process.js';
import type { Part } from './parts.js';

export interface FaultOptions {
  readonly instances: readonly Part[];
  /** The owner of the lock's hold in Redis; undefined when nobody holds it. */
  readonly owner: (key: string) => Promise<string | undefined>;
  /** The highest token that the database has seen. */
  readonly fence: () => Promise<number>;
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
/** A lock that is free for so long is wanted by nobody. */
const NOBODY_WANTS_IT_MS = 1_000;

/**
 * Does to instances what machines do to them, while they hold the lock, and reports what came about before the
 * signal ended it: kills one, wherever it is at the moment; stops one that has not written yet, until another has
 * taken the lock over, which is after the lease, and then lets it go on. If it then finds nothing to write (because
 * it read in the last moment that all is sold), the next one is stopped, until the database has refused a write.
 */
export const rehearseFaults = async (options: FaultOptions): Promise<FaultReport> => {
  const { instances, fence, soldShare, staleWritesRefused, onEvent, signal } = options;
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
      const { instance, key, owner } = await stopHolder(
        options,
        async ({ token }) => (await fence()) < token,
      );
      onEvent(`${instance.name} stopped while it held the lock`);
      try {
        let freeSince = Infinity;
        await until(async () => {
          const now = await options.owner(key);
          if (now !== undefined) return !now.startsWith(owner);
          // Those who still want it may all be with the one that stands still.
          freeSince = Math.min(freeSince, performance.now());
          return performance.now() - freeSince > NOBODY_WANTS_IT_MS;
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

/** What an instance said last, and the instance, which is stopped. */
type StoppedHolder = Acquired & { readonly instance: Part };

/**
 * Stops an instance that says it got the lock, and asks Redis whether it still holds it; if not, or if it does not
 * suit, lets it go on and tries the next.
 */
const stopHolder = async (
  options: FaultOptions,
  suits: (holder: StoppedHolder) => Promise<boolean> = () => Promise.resolve(true),
): Promise<StoppedHolder> => {
  const holds = async ({ key, owner }: StoppedHolder): Promise<boolean> =>
    (await options.owner(key))?.startsWith(owner) ?? false;
  for (;;) {
    const holder = await stopNextHolder(options);
    // Asked twice: a release that was under way when the instance stopped has arrived at the second time.
    if ((await holds(holder)) && (await holds(holder)) && (await suits(holder))) return holder;
    holder.instance.kill('SIGCONT');
  }
};

/** Stops the instance that says next that it got the lock, and takes in all that it had said until it stood still. */
const stopNextHolder = ({ instances, signal }: FaultOptions): Promise<StoppedHolder> =>
  new Promise((resolve, reject) => {
    let holder: StoppedHolder | undefined;
    let timer: NodeJS.Timeout | undefined;
    const listeners = instances.map((instance) =>
      instance.onMessage((message) => {
        if (message.type !== 'acquired' || (holder && holder.instance !== instance)) return;
        // A hold goes on from caller to caller of an instance, so by now it may be in one that came later.
        holder = { ...message, instance };
        if (timer) return;
        instance.kill('SIGSTOP');
        timer = setTimeout(() => {
          stopListening();
          resolve(holder!);
        }, POLL_MS);
      }),
    );
    const onAbort = () => {
      stopListening();
      reject(signal.reason as Error);
    };
    const stopListening = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      for (const off of listeners) off();
    };
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
  });
