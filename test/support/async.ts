import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';

const LOOK_EVERY_MS = 5;

export interface UntilOptions {
  /** How long to go on looking, in ms. Default: 10,000. */
  readonly timeoutMs?: number;
  /** What is waited for, in words, for the error. */
  readonly what?: string;
}

/**
 * Looks every 5 ms until `condition` returns something truthy, and returns that. A condition that throws has not
 * come true yet; the error of the last look is the cause when the time is over.
 *
 * @example
 * const hold = await until(() => locks.inspect('order'), { what: 'the worker holds the lock' });
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  { timeoutMs = 10_000, what = condition.toString() }: UntilOptions = {},
): Promise<Exclude<T, false | null | undefined | 0 | ''>> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    let last: unknown;
    try {
      const value = await condition();
      if (value) return value as Exclude<T, false | null | undefined | 0 | ''>;
    } catch (error) {
      last = error;
    }
    if (performance.now() >= deadline) {
      const why = last instanceof Error ? ` (at last: ${last.message})` : '';
      throw new Error(`not within ${timeoutMs} ms: ${what}${why}`, { cause: last });
    }
    await sleep(LOOK_EVERY_MS);
  }
}

/** Rejects with a clear error when `promise` takes longer than `timeoutMs`. The timer does not outlive it. */
export async function within<T>(timeoutMs: number, promise: Promise<T>, what = 'the promise'): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not settle within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T | PromiseLike<T>): void;
  reject(reason: unknown): void;
}

/** A promise that is settled from outside. */
export function deferred<T = void>(): Deferred<T> {
  let settle: Pick<Deferred<T>, 'resolve' | 'reject'> | undefined;
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...(settle as unknown as Pick<Deferred<T>, 'resolve' | 'reject'>) };
}

export interface RejectionCollector {
  /** The reasons seen so far. */
  readonly reasons: readonly unknown[];
  /** Lets rejections that are under way be reported, stops collecting, and returns all reasons. */
  finish(): Promise<readonly unknown[]>;
}

/**
 * Collects what is rejected without a handler from now on. Vitest also reports these by itself, at the end of a run
 * and for the whole file; this says which test it was, and works in worker processes, which would otherwise die.
 */
export function collectUnhandledRejections(): RejectionCollector {
  const reasons: unknown[] = [];
  const listener = (reason: unknown) => void reasons.push(reason);
  process.on('unhandledRejection', listener);
  return {
    reasons,
    async finish() {
      // Node reports after the microtasks of a turn; the second turn covers what the first one started.
      await nextTurn();
      await nextTurn();
      process.off('unhandledRejection', listener);
      return reasons;
    },
  };
}
