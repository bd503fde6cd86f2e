import { Redis } from 'ioredis';
import { until } from '../async.js';
import type { RedisServer } from '../servers/redis-server.js';

/** One command that a script ran, and the keys that its caller declared. */
export interface ScriptCommand {
  readonly name: string;
  readonly args: readonly string[];
  readonly declared: ReadonlySet<string>;
}

/** The commands that scripts run on a server during an action. */
export const scriptCommandsOf = async (
  server: RedisServer,
  action: () => Promise<unknown>,
): Promise<readonly ScriptCommand[]> => {
  const client = new Redis(server.url);
  const monitor = await client.monitor();
  const seen: ScriptCommand[] = [];
  let declared: ReadonlySet<string> = new Set();
  let isOver = false;
  monitor.on('monitor', (_time: string, [command = '', ...args]: string[], source: string) => {
    const name = command.toLowerCase();
    if (name === 'echo') isOver = true;
    if (name.startsWith('eval')) declared = new Set(args.slice(2, 2 + Number(args[1])));
    if (source === 'lua') seen.push({ name, args, declared });
  });
  try {
    await action();
    await client.echo('over');
    await until(() => isOver, { what: 'the monitor has seen all commands' });
    return seen;
  } finally {
    monitor.disconnect();
    client.disconnect();
  }
};

/** The same, each command with its ranges: these say how many entries the scripts visit. */
export const visitsOf = async (server: RedisServer, action: () => Promise<unknown>): Promise<string[]> => {
  const commands = await scriptCommandsOf(server, action);
  return commands.map(({ name, args }) => {
    const { length } = args.filter((arg) => arg.includes(':'));
    return [name, ...args.filter((arg) => /^-?\d{1,4}$/.test(arg)), `(${length})`].join(' ');
  });
};
