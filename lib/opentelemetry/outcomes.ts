/** Codes that say how a call ended, and name no defect: a span with one of them is no error. */
const NO_DEFECT: ReadonlySet<string> = new Set([
  'LOCK_TAKEN',
  'LOCK_QUEUE_FULL',
  'LOCK_ABORTED',
  'LOCK_SHUTDOWN',
]);

/** Returns the code of an error; `error` for an error without one. */
const codeOf = (error: unknown): string => {
  const { code } = (typeof error === 'object' && error !== null ? error : {}) as { code?: unknown };
  return typeof code === 'string' ? code : 'error';
};

/** Returns how a call that acquires ended: `acquired`, or the code of its error. */
export const outcomeOf = (message: object): string =>
  'error' in message && message.error !== undefined ? codeOf(message.error) : 'acquired';

/** Returns true when another holder was the reason. */
export const isTaken = (outcome: string): boolean =>
  outcome === 'LOCK_TAKEN' || outcome === 'LOCK_QUEUE_FULL';

/** Returns true for an outcome that makes a span an error. */
export const isDefect = (outcome: string): boolean => outcome !== 'acquired' && !NO_DEFECT.has(outcome);
