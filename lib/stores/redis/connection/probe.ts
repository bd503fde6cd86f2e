import type { RedisLike } from './redis-client.js';
import { isNoScript } from './redis-failure.js';
import type { Script } from './script.js';

/** A script that runs on each new connection before anything else, to find out what the Redis user may do there. */
export interface Probe {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/** Resolves with the reply of the probe, or with the error with which it failed. */
export const runProbe = async (client: RedisLike, { script, keys, args }: Probe): Promise<unknown> => {
  const rest = [keys.length, ...keys, ...args];
  try {
    return await client.call('evalsha', script.sha, ...rest);
  } catch (error) {
    return isNoScript(error)
      ? client.call('eval', script.source, ...rest).catch((other: unknown) => other)
      : error;
  }
};
