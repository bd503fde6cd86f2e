import type { RedisServer } from '../../support/servers/redis-server.js';

/** How often each command was called since the server started, subcommands apart (`client|info`). */
export type CommandCounts = ReadonlyMap<string, number>;

export const commandCounts = async (server: RedisServer): Promise<CommandCounts> => {
  const info = await server.text('INFO', 'commandstats');
  return new Map(
    [...info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name, calls]) => [name!, Number(calls)]),
  );
};

/** The same of several servers together. */
export const commandCountsOf = async (servers: readonly RedisServer[]): Promise<CommandCounts> => {
  const total = new Map<string, number>();
  for (const counts of await Promise.all(servers.map(commandCounts))) {
    for (const [name, calls] of counts) total.set(name, (total.get(name) ?? 0) + calls);
  }
  return total;
};

/** What it takes to ask the server for its counts: `server.text` is a connection of its own each time. */
const OWN = ['info', 'hello', 'auth', 'select', 'client|setinfo', 'client|setname'];

/** How many commands clients sent between two counts, the bench's own left out. */
export const sentBetween = (
  before: CommandCounts,
  after: CommandCounts,
  insideScripts: readonly string[],
): number => {
  let sent = 0;
  for (const [name, calls] of after) {
    if (OWN.includes(name) || insideScripts.includes(name)) continue;
    sent += calls - (before.get(name) ?? 0);
  }
  return sent;
};
