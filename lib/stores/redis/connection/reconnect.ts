/** Returns how long to wait before this attempt to connect, in ms. Spread out, so that not all processes come back in the same instant. */
export const reconnectInMs = (attempt: number): number =>
  Math.min(25 * 2 ** Math.min(attempt, 5), 500) * (0.5 + Math.random() / 2);
