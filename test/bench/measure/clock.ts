/** Milliseconds on the machine's monotonic clock: the same in all processes, unlike `performance.now()`. */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;
