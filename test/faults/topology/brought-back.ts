import { AFTERWARDS } from '../../checker/rules/afterwards.rule.js';
import { until } from '../../support/async.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { FAIR_TIMEOUTS } from '../settings.js';
import { FAIR_KEY } from '../workload/task.js';
import type { Seat } from './seat.js';

/** Longer than all who wait have patience. */
const ALL_ARE_DEAD_MS = 60_000;

/** Whether there is nobody in a fair line whose time is not over. */
const isDead = async (server: RedisServer, timeouts: string): Promise<boolean> => {
  const [seconds] = (await server.cli('TIME')) as [string, string];
  return (await server.cli('ZCOUNT', timeouts, Number(seconds) * 1_000, '+inf')) === 0;
};

/**
 * A promotion may bring places in line back whose owners have gone since. Those of a fair lock stay until their time is over
 * and somebody asks for it: somebody does, and only what is left then is there for another reason.
 */
export const passOverWhoCameBack = async (
  servers: readonly RedisServer[],
  seats: readonly Seat[],
): Promise<void> => {
  for (const server of servers) {
    const queues = (await server.cli('KEYS', `${FAIR_TIMEOUTS}*`)) as string[];
    if (queues.length === 0) continue;
    await until(
      async () => (await Promise.all(queues.map((queue) => isDead(server, queue)))).every(Boolean),
      {
        timeoutMs: ALL_ARE_DEAD_MS,
        what: `nobody keeps a place in ${queues.join(', ')}`,
      },
    );
    const [seat] = seats.filter(({ isTaken }) => isTaken);
    await seat?.perform({ style: AFTERWARDS, keys: [FAIR_KEY], waitMs: 0, steps: [] });
  }
};
