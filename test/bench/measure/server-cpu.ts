import type { RedisServer } from '../../support/servers/redis-server.js';

/** CPU time that a server has used since it was started, in µs. */
export const cpuUsOf = async (server: RedisServer): Promise<number> => {
  const info = await server.text('INFO', 'cpu');
  const seconds = [...info.matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm)].map(([, value]) => Number(value));
  return seconds.reduce((total, value) => total + value, 0) * 1e6;
};
