import type { RedisOptions } from 'ioredis';

/** Where a server is. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/** Returns where the server is for this process. */
export const seenFromHere = (at: ServerAddress, natMap: RedisOptions['natMap'] | null): ServerAddress => {
  if (!natMap) return at;
  const name = `${at.host}:${at.port}`;
  return (typeof natMap === 'function' ? natMap(name) : natMap[name]) ?? at;
};
