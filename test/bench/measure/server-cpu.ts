import { readdir, readFile } from 'node:fs/promises';
import type { RedisServer } from '../../support/servers/redis-server.js';

/** CPU time that a server has used since it was started, in µs. */
export const cpuUsOf = async (server: RedisServer): Promise<number> => {
  const info = await server.text('INFO', 'cpu');
  const seconds = [...info.matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm)].map(([, value]) => Number(value));
  return seconds.reduce((total, value) => total + value, 0) * 1e6;
};

/** Clock ticks in a second that Linux counts CPU time in. */
const TICKS = 100;

/** CPU time in ticks of a process, and of its children that have ended; its parent. */
const usageOf = async (pid: string | number) => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  // The name of the program may have spaces. What follows it begins with the state.
  const [, parent, ...rest] = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? [];
  return { parent: Number(parent), ticks: rest.slice(9, 13).map(Number) };
};

/** CPU time of a process and of its children since it was started, in µs. Needs Linux. */
export const cpuUsOfProcess = async (pid: number): Promise<number> => {
  const all = await Promise.all((await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(usageOf));
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = (await usageOf(pid)).ticks;
  const living = all
    .filter(({ parent }) => parent === pid)
    .reduce((total, { ticks: [its = 0, ofSystem = 0] }) => total + its + ofSystem, 0);
  return ((user + system + endedUser + endedSystem + living) / TICKS) * 1e6;
};
