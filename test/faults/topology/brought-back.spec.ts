import { expect, it } from 'vitest';
import { AFTERWARDS } from '../../checker/rules/afterwards.rule.js';
import { FAIR_QUEUES, FAIR_TIMEOUTS, SETTINGS } from '../settings.js';
import { FAIR_KEY } from '../workload/task.js';
import { passOverWhoCameBack } from './brought-back.js';
import { SingleRedis } from './single-redis.js';

const ROUND = 'r0';

it('a place in a fair line whose owner has gone is passed over when its time is over, and not before', async () => {
  await using topology = await SingleRedis.start({ workers: 1, persistence: 'none' });
  const { server } = topology.watched;
  const [seat] = topology.seats;
  seat!.begin(ROUND);
  const queue = `{${SETTINGS.keyPrefix}${ROUND}:${FAIR_KEY}}`;
  const gone = `${seat!.life.instance}:fair:1`;
  const now = async (): Promise<number> => Number(((await server.cli('TIME')) as string[])[0]) * 1_000;
  const deadAt = (await now()) + 2_000;
  await server.cli('RPUSH', `${FAIR_QUEUES}${queue}`, gone);
  await server.cli('ZADD', `${FAIR_TIMEOUTS}${queue}`, deadAt, gone);

  await passOverWhoCameBack([server], topology.seats);

  expect(await now()).toBeGreaterThanOrEqual(deadAt);
  expect(await server.cli('EXISTS', `${FAIR_QUEUES}${queue}`, `${FAIR_TIMEOUTS}${queue}`)).toBe(0);
  const events = topology.takeHistory();
  expect(events.some((event) => event.type === 'call' && event.style === AFTERWARDS)).toBe(true);
  expect(events.some((event) => event.type === 'granted')).toBe(true);
});
