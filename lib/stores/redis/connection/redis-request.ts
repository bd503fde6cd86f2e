import type { Script, ScriptRefusal } from './script.js';

/** A command, and how its reply is read; a reply that cannot be read makes the outcome unknown. */
export interface RedisRequest<T> {
  readonly command: string;
  readonly args: readonly (string | number)[];
  readonly read: (reply: unknown) => T;
  /** What it is about, for the message of a failure. */
  readonly keys?: readonly string[];
  /** What the script itself may refuse. */
  readonly refusals?: readonly ScriptRefusal[];
  /** What to send instead when the server does not know the script. */
  readonly inFull?: () => RedisRequest<T>;
}

/** A run of a script: by its hash, where the server knows it. */
export const requestFor = <T>(
  { sha, source, refusals }: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
  read: (reply: unknown) => T,
): RedisRequest<T> => ({
  command: 'evalsha',
  args: [sha, keys.length, ...keys, ...args],
  read,
  keys,
  refusals,
  inFull: () => ({ command: 'eval', args: [source, keys.length, ...keys, ...args], read, keys, refusals }),
});
