import { setTimeout as sleep } from 'node:timers/promises';
import type { Acquired } from './part-process.js';
import type { Part } from './parts.js';

export interface FaultOptions {
  /** Instances that ask before they write. */
  readonly instances: readonly Part[];
  readonly items: number;
  /** Resolves with the owner of the lock in the store; undefined when it is free. */
  readonly owner: (key: string) => Promise<string | undefined>;
  /** Resolves with the highest token that the database has seen. */
  readonly fence: () => Promise<number>;
  /** Returns the sold share of the stock, from 0 to 1. */
  readonly soldShare: () => number;
  readonly onEvent: (text: string) => void;
  /** Signal that ends the drill. */
  readonly signal: AbortSignal;
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
 * Causes faults of instances that hold the lock, and reports those that happened before the signal ended the drill. It
 * stops one instance between its read and its write, until another one has acquired the lock and has read. Then it lets
 * the first one go on to its write, which is stale. Later it kills a holder of the lock, at whatever step it is.
 */
export const rehearseFaults = async (options: FaultOptions): Promise<FaultReport> => {
  const { instances, soldShare, onEvent, signal } = options;
  const done = { killed: 0, stopped: 0 };
  const writers = new Writers(options);
  try {
    await until(() => writers.waiting !== undefined, signal);
    await stopWriter(writers.waiting!, options);
    done.stopped++;

    await until(() => soldShare() >= KILL_AT_SHARE, signal);
    const victim = await stopHolder(options);
    victim.instance.kill('SIGKILL');
    done.killed++;
    onEvent(`${victim.instance.name} killed while it held the lock`);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    for (const instance of instances) instance.kill('SIGCONT');
    writers.letAllWrite();
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
  { instance, token, written }: Writer,
  { fence, onEvent, signal }: FaultOptions,
): Promise<void> => {
  instance.kill('SIGSTOP');
  onEvent(`${instance.name} stopped while it held the lock`);
  try {
    // There is at least one other caller for the lock: the buyer of this instance tries the next instance if this one
    // does not reply.
    await until(async () => signal.aborted || (await fence()) > token);
  } finally {
    instance.kill('SIGCONT');
  }
  onEvent(`${instance.name} goes on`);
  instance.send({ type: 'write', token });
  // Also after the end of the sale: the outcome of the write is part of the result.
  await until(() => written() || !instance.alive);
};

/** Instance that has read under the lock and waits to write. */
interface Writer {
  readonly instance: Part;
  readonly token: number;
  /** Returns true when its write has ended. */
  readonly written: () => boolean;
}

/** Replies to the instances that ask before they write. All may write, except the first one that asks late enough. */
class Writers {
  waiting: Writer | undefined;
  private allMayWrite = false;

  constructor({ instances, items }: FaultOptions) {
    for (const instance of instances) {
      // For the whole sale: an instance also asks after the drill.
      instance.onMessage((message) => {
        if (message.type !== 'about-to-write') return;
        const { left, token } = message;
        const isLate = left <= items * (1 - STOP_AT_SHARE);
        if (this.allMayWrite || this.waiting || !isLate) instance.send({ type: 'write', token });
        else this.waiting = writerOf(instance, token);
      });
    }
  }

  letAllWrite(): void {
    this.allMayWrite = true;
    this.waiting?.instance.send({ type: 'write', token: this.waiting.token });
  }
}

const writerOf = (instance: Part, token: number): Writer => {
  let written = false;
  const off = instance.onMessage((message) => {
    if (message.type !== 'wrote' || message.token !== token) return;
    written = true;
    off();
  });
  return { instance, token, written: () => written };
};

/** Last message of an instance, which is stopped. */
type StoppedHolder = Acquired & { readonly instance: Part };

/**
 * Stops an instance that reports the lock, and checks in the store whether it still holds it; if not, tries the next one.
 */
const stopHolder = async (options: FaultOptions): Promise<StoppedHolder> => {
  const holds = async ({ key, owner }: StoppedHolder): Promise<boolean> =>
    (await options.owner(key))?.startsWith(owner) ?? false;
  for (;;) {
    const holder = await stopNextHolder(options);
    // Checks twice: a release that was in progress when the instance stopped has arrived at the second check.
    if ((await holds(holder)) && (await holds(holder))) return holder;
    holder.instance.kill('SIGCONT');
  }
};

/** Stops the next instance that reports the lock, and reads all its messages until it stands still. */
const stopNextHolder = ({ instances, signal }: FaultOptions): Promise<StoppedHolder> =>
  new Promise((resolve, reject) => {
    let holder: StoppedHolder | undefined;
    let timer: NodeJS.Timeout | undefined;
    const listeners = instances.map((instance) =>
      instance.onMessage((message) => {
        if (message.type !== 'acquired' || (holder && holder.instance !== instance)) return;
        // An instance hands a hold off between its callers, so the message of a later caller may follow.
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
