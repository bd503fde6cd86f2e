/** Error of the person at the terminal: the message says what to write instead. */
export class UsageError extends Error {}
