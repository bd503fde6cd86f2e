import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { until } from '../../support/async.js';
import { RedisServer } from '../../support/servers/redis-server.js';
import { labNow } from '../history/lab-clock.js';
import { ServerPulse } from './server-pulse.js';

// The history began long ago: no moment is before it.
vi.hoisted(() => (process.env['FAULT_LAB_ORIGIN'] = '0'));

const BACK_MS = 1_417;

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

describe('the pulse of a server', () => {
  it('knows at once what a clock tells that was set back', async () => {
    const pulse = new ServerPulse(server, () => undefined);
    try {
      await until(() => pulse.isKnown);
      const from = labNow();
      const [seconds, micros] = (await server.cli('TIME')) as [string, string];
      pulse.jumped(-BACK_MS);
      const moment = pulse.momentOf(Number(seconds) * 1_000 + Number(micros) / 1_000 - BACK_MS);
      expect(moment).toBeGreaterThan(from - BACK_MS / 2);
      expect(moment).toBeLessThanOrEqual(labNow());
    } finally {
      pulse.close();
    }
  });
});
