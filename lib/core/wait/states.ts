/** What a waiting caller knows when it decides what to do next. Times are in ms on the clock of its process. */
export interface View {
  readonly now: number;
  readonly deadline: number;
  /** Whether it may send a request: callers at a semaphore leave that to the first of them. */
  readonly mayAsk: boolean;
  /** Whether it was woken since its last request, or has sent none. */
  readonly isWoken: boolean;
  /** When it asks without a wake-up. */
  readonly retryAt: number;
  /** Whether the store fails for this caller. */
  readonly inOutage: boolean;
  /** Whether it goes on waiting in an outage: it came before that. */
  readonly keepsWaiting: boolean;
  /** Whether it is to find out whether the store works again. */
  readonly isToLook: boolean;
}

/**
 * - `ask`: send the request that may win. At the end of its wait each caller does: an earlier reply does not show that
 *   the store still works.
 * - `look`: send a request that changes nothing, to find out whether the store works.
 * - `sleep`: until a wake-up, or until it is time to ask
 * - `give up`: the wait is over, and the store fails
 */
export type Next = 'ask' | 'look' | 'sleep' | 'give up';

/** Returns what a waiting caller does next. */
export const nextOf = (view: View): Next => {
  const isLate = view.now >= view.deadline;
  if (view.inOutage) {
    if (!view.keepsWaiting) return 'look';
    if (isLate) return 'give up';
    return view.isToLook ? 'look' : 'sleep';
  }
  if (isLate) return 'ask';
  return view.mayAsk && (view.isWoken || view.now >= view.retryAt) ? 'ask' : 'sleep';
};

/** What a waiting caller knows of a request that has failed. */
export interface FailedView {
  readonly isLate: boolean;
  /** Whether the store asks for another try, and gets one. */
  readonly getsAnotherTry: boolean;
  /** Whether the store may recover without any change. */
  readonly isPassing: boolean;
  readonly keepsWaiting: boolean;
  /** Whether certainly nothing happened, or it makes no difference. */
  readonly isHarmless: boolean;
}

/**
 * - `ask again`: soon
 * - `go on`: wait until the store works again
 * - `give up`: the wait is over, and the store fails
 * - `fail`: with this failure
 */
export type AfterFailure = 'ask again' | 'go on' | 'give up' | 'fail';

/** Returns what a waiting caller does after a failure of the store. */
export const afterFailure = (view: FailedView): AfterFailure => {
  if (view.getsAnotherTry && !view.isLate) return 'ask again';
  if (!view.isPassing || !view.keepsWaiting || !view.isHarmless) return 'fail';
  return view.isLate ? 'give up' : 'go on';
};
