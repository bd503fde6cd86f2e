import { setTimeout as sleep } from 'node:timers/promises';
import type { Acquired } from './part-process.js';
import type { Part } from './parts.js';

export interface FaultOptions {
  /** They ask before they write. */
  readonly instances: readonly Part[];
  readonly items: number;
  /** The owner of the lock's hold in Redis; undefined when nobody holds it. */
  readonly owner: (key: string) => Promise<string | undefined>;
  /** The highest token that the database has seen. */
  readonly fence: () => Promise<number>;
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

const STOP_AT_SHARE = 0.2;
const KILL_AT_SHARE = 0.5;
const POLL_MS = 20;

/**
 * Does to instances what machines do to them, while they hold the lock, and reports what came about before the
 * signal ended it: stops one between its read and its write, until another has taken the lock over and has read,
 * and then lets it go on to its write, which is stale; and kills one, wherever it is at the moment.
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
 * Stops the instance that waits to write until another has taken the lock over, which is after the lease, and has
 * read: from then on the database must refuse the write.
 */
const stopWriter = async (
  { instance, token, written }: Writer,
  { fence, onEvent, signal }: FaultOptions,
): Promise<void> => {
  instance.kill('SIGSTOP');
  onEvent(`${instance.name} stopped while it held the lock`);
  try {
    // Somebody wants the lock: the buyer for whom this instance writes, if nobody else, who tries the next one when
    // this one does not answer.
    await until(async () => signal.aborted || (await fence()) > token);
  } finally {
    instance.kill('SIGCONT');
  }
  onEvent(`${instance.name} goes on`);
  instance.send({ type: 'write', token });
  // Also when the sale is over: what the write came to is a part of the result.
  await until(() => written() || !instance.alive);
};

/** An instance that has read under the lock and waits to write. */
interface Writer {
  readonly instance: Part;
  readonly token: number;
  /** Whether its write is over. */
  readonly written: () => boolean;
}

/** Answers the instances that ask before they write: all may, but the first one that comes late enough has to wait. */
class Writers {
  waiting: Writer | undefined;
  private allMayWrite = false;

  constructor({ instances, items }: FaultOptions) {
    for (const instance of instances) {
      // For the whole sale: an instance also asks when the drill is over.
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

/** What an instance said last, and the instance, which is stopped. */
type StoppedHolder = Acquired & { readonly instance: Part };

/** Stops an instance that says it got the lock, and asks Redis whether it still holds it; if not, tries the next. */
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
