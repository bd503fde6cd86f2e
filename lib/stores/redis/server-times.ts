import { impossible } from './connection/strict-replies.js';

/** Names one run of a server, from its INFO server; undefined where it does not say. */
const readRunId = (info: string): string | undefined => /^run_id:(\w+)\r?$/m.exec(info)?.[1];

/** What INFO server says: which run of the server it is, and for how long it has been up at least, in ms. */
export const readServer = (reply: unknown): { serverId: string | undefined; upForMs: number } => ({
  upForMs: readUptime(reply),
  serverId: readRunId(reply as string),
});

/** For how long a server has been up at least, in ms, from its INFO server. */
const readUptime = (reply: unknown): number => {
  const seconds = typeof reply === 'string' && /^uptime_in_seconds:(-?\d{1,12})\r?$/m.exec(reply)?.[1];
  if (!seconds) throw impossible(reply);
  // Counted in whole seconds of its clock, which may have been set back: it may have been started just before one was over.
  return Math.max(0, Number(seconds) - 1) * 1_000;
};

/** What its clock says, in ms since 1970, from its TIME. */
export const readTime = (reply: unknown): number => {
  const [seconds, micros] = (Array.isArray(reply) ? reply : []).map(Number);
  const ms = seconds! * 1_000 + micros! / 1_000;
  if (!Number.isFinite(ms)) throw impossible(reply);
  return ms;
};

/** Tokens are microseconds of the server's clock, where no larger one was given before. */
export const TOKENS_PER_MS = 1_000;
