/** Runs work in a promise reaction. Not by `queueMicrotask`, which the fake timers of Jest and Vitest can hold back. */
export const later = (work: () => void): void => void Promise.resolve().then(work);
