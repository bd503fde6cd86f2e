/**
 * Meaning of another program's value at the name of a lock. `taken`: it is a lock of another library, which keeps callers
 * out. `error`: it is a mistake.
 */
export type ForeignHold = 'error' | 'taken';

/** All values of the option. */
export const FOREIGN_HOLDS: readonly ForeignHold[] = ['error', 'taken'];
