/**
 * What a string of another program at the name of a lock means: a mistake, or a lock of another library, which keeps
 * callers out.
 */
export type ForeignHold = 'error' | 'taken';

/** All values of the option. */
export const FOREIGN_HOLDS: readonly ForeignHold[] = ['error', 'taken'];
