let last = 0;

/** Returns a number that nothing else on the page has. */
export const newId = (): number => (last += 1);

/** Returns the time in ms since 1970. It is the same for all processes, and has fractions. */
export const clock = (): number => performance.timeOrigin + performance.now();
