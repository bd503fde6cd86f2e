import { impossible } from './connection/strict-replies.js';

/** Returns the id of one run of a server, from INFO server; undefined when it is missing. */
const readRunId = (info: string): string | undefined => /^run_id:(\w+)\r?$/m.exec(info)?.[1];

/** Reads INFO server: the id of this run, and the minimum uptime in ms. */
export const readServer = (reply: unknown): { serverId: string | undefined; upForMs: number } => ({
  upForMs: readUptime(reply),
  serverId: readRunId(reply as string),
});

/** Returns the minimum uptime of a server in ms, from INFO server. */
const readUptime = (reply: unknown): number => {
  const seconds = typeof reply === 'string' && /^uptime_in_seconds:(-?\d{1,12})\r?$/m.exec(reply)?.[1];
  if (!seconds) throw impossible(reply);
  // The uptime counts whole seconds of a clock that may have been set back: the first second may have been almost over.
  return Math.max(0, Number(seconds) - 1) * 1_000;
};

/** Reads TIME: the server's clock, in ms since 1970. */
export const readTime = (reply: unknown): number => {
  const [seconds, micros] = (Array.isArray(reply) ? reply : []).map(Number);
  const ms = seconds! * 1_000 + micros! / 1_000;
  if (!Number.isFinite(ms)) throw impossible(reply);
  return ms;
};

/** Fencing tokens per ms: a token is the server's clock in microseconds, unless a larger one was given before. */
export const TOKENS_PER_MS = 1_000;
