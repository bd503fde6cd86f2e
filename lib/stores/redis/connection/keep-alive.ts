/** Idle time in ms after which the operating system probes whether the other side is alive. ioredis 5 never probes. */
export const KEEP_ALIVE_MS = 10_000;
