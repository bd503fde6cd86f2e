import type { RedisOptions } from 'ioredis';

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/** Returns the address at which this process reaches the server. */
export const seenFromHere = (at: ServerAddress, natMap: RedisOptions['natMap'] | null): ServerAddress => {
  if (!natMap) return at;
  const name = `${at.host}:${at.port}`;
  return (typeof natMap === 'function' ? natMap(name) : natMap[name]) ?? at;
};
