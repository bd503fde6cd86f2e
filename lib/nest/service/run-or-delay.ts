import { LockError } from '../../core/errors/lock.errors.js';
import {
  checkFunction,
  checkMs,
  checkObject,
  invalidOption,
  reading,
} from '../../core/settings/option-checks.js';
import { checkNames, type Names } from '../../core/settings/option-names.js';

/** Part of a BullMQ job that `runOrDelay` uses. */
export interface DelayableJob {
  /** Moves the active job to the delayed ones, until a time in ms since 1970. */
  moveToDelayed(timestamp: number, token?: string): Promise<void>;
}

/** Options of `runOrDelay`. */
export interface RunOrDelayOptions {
  /** Time in ms until the job may run again, at least 1. Default: 1,000. */
  readonly delayMs?: number | undefined;
}

const NAMES: Names<RunOrDelayOptions> = { delayMs: true };
const DEFAULT_DELAY_MS = 1_000;
const WHAT = 'runOrDelay';

const delayOf = (options: RunOrDelayOptions): number => {
  checkObject(`The options of ${WHAT}`, 'an object such as { delayMs: 1_000 }', options);
  return reading(`The options of ${WHAT}`, () => {
    checkNames(options, WHAT, NAMES);
    return checkMs('delayMs', options.delayMs, { min: 1 }) ?? DEFAULT_DELAY_MS;
  });
};

const ERROR = 'DelayedError';

/** Workers of BullMQ 3, 5 and 6 recognise this error by its name, workers of BullMQ 4 by its message. */
const delayedError = (cause: LockError): Error =>
  Object.defineProperty(new Error(ERROR, { cause }), 'name', {
    value: ERROR,
    configurable: true,
    writable: true,
  });

/**
 * Runs the work of a BullMQ job, or delays the job if a lock or a permit of the work cannot be acquired now. That is so if it
 * is taken, the worker stops, or the store fails. A delayed job has not failed, and since BullMQ 5 it has used up no attempt.
 * Any worker runs it later. Delayed jobs come back in no order.
 *
 * This holds for every error of this library with `retryable`, also for that of a lock inside the work, after a part of
 * the work has been done. All other errors pass, and fail the job.
 *
 * @param job job that the worker passes to `process`
 * @param token second argument of `process`: it shows BullMQ that this worker has the job
 * @param work function that acquires the lock, as a method with `@Locked` or `@Limited`
 * @throws `DelayedError`, which tells the worker that the job was delayed. Let it pass. Its `cause` is the error of the
 * lock.
 * @throws LockConfigurationError for an invalid argument, before the work begins
 *
 * @example
 * process(job: Job<{ tenant: string }>, token?: string): Promise<void> {
 *   return runOrDelay(job, token, () => this.crm.sync(job.data.tenant), { delayMs: 5_000 });
 * }
 */
export const runOrDelay = async <T>(
  job: DelayableJob,
  token: string | undefined,
  work: () => T | PromiseLike<T>,
  options: RunOrDelayOptions = {},
): Promise<Awaited<T>> => {
  if (typeof (job as Partial<DelayableJob> | null | undefined)?.moveToDelayed !== 'function')
    invalidOption(`The job of ${WHAT}`, 'a job of BullMQ, which has moveToDelayed', job);
  // Without the token, BullMQ would also delay a job that another worker has taken over.
  if (typeof token !== 'string')
    invalidOption(`The token of ${WHAT}`, 'the second argument of process', token);
  if (checkFunction(`The work of ${WHAT}`, work) === undefined)
    invalidOption(`The work of ${WHAT}`, 'a function', work);
  const delayMs = delayOf(options);
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof LockError && error.retryable)) throw error;
    await job.moveToDelayed(Date.now() + delayMs, token);
    throw delayedError(error);
  }
};
