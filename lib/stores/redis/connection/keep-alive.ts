/** After how long without a word the operating system asks whether the other side still lives. ioredis 5 never asks. */
export const KEEP_ALIVE_MS = 10_000;
