/** Returns the pause before an attempt to connect, in ms: random, so that processes do not all reconnect at once. */
export const reconnectInMs = (attempt: number): number =>
  Math.min(25 * 2 ** Math.min(attempt, 5), 500) * (0.5 + Math.random() / 2);
