import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  documentedLogin,
  DOCUMENTED_RULES,
  giveRules,
  QUEUE_RULES,
  READ_WRITE_RULES,
  refusedBy,
} from '../support/redis/documented-user.js';
import { newKey } from '../support/redis/lab.js';
import { openLocks, type LocksOptions, type OpenLocks } from '../support/redis/open-locks.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';

failOnUnhandledRejections();

const PATIENCE_MS = 30_000;
const ALL = [...DOCUMENTED_RULES, ...READ_WRITE_RULES];

describe('the documented user of Redis, on each server of a quorum,', { timeout: 60_000 }, () => {
  const servers: RedisServer[] = [];
  const opened: OpenLocks[] = [];

  beforeAll(async () => {
    servers.push(...(await RedisServer.startAll([{}, {}, {}])));
  }, 60_000);
  beforeEach(() => giveRules(servers, ALL));
  afterEach(async () => {
    for (const one of opened.splice(0)) await one[Symbol.asyncDispose]();
  });
  afterAll(async () => {
    for (const server of servers) await server.stop();
  });

  const open = (options: LocksOptions = {}): OpenLocks => {
    const one = openLocks(
      servers.map(({ host, port }) => ({ host, port, ...documentedLogin })),
      { delayAfterRestartMs: 0, waitMs: PATIENCE_MS, ...options },
    );
    opened.push(one);
    return one;
  };

  it('is enough for everything, and is refused nothing', async () => {
    const [a, b] = [open(), open()];
    for (const options of [{}, { mode: 'read' }, { mode: 'write' }] as const) {
      const key = newKey();
      const lease = await a.locks.acquire(key, options.mode ? { mode: 'write' } : {});
      const waiting = b.locks.acquire(key, options);
      expect(await lease.verify()).toBe(true);
      await lease.release();
      await (await waiting).release();
    }
    expect(await refusedBy(...servers)).toEqual([]);
  });

  it.each(QUEUE_RULES)('without %s is enough: no caller is queued on a single server', async (rule) => {
    await giveRules(
      servers,
      ALL.filter((one) => one !== rule),
    );
    const { locks, store } = open();
    expect(await store.diagnose()).toEqual([]);
    expect(await (await locks.acquire(newKey())).release()).toBe('released');
  });

  it.each(['+info', '+time'])('without %s takes no lock, and is told so of each server', async (rule) => {
    await giveRules(
      servers,
      ALL.filter((one) => one !== rule),
    );
    // Tokens need TIME as well.
    const failure = await open({ fencing: false })
      .locks.acquire(newKey())
      .catch((error: unknown) => error);
    for (const { host, port } of servers) {
      expect(String(failure)).toContain(`${host}:${port}: it is not known since when its server is up`);
    }
    expect(String(failure)).toContain('NOPERM');
  });

  it('without +info on one server has that one count as failed, and locks go on', async () => {
    await giveRules(
      servers.slice(0, 1),
      ALL.filter((one) => one !== '+info'),
    );
    const lease = await open().locks.acquire(newKey());
    expect([...lease.grantedBy()].sort()).toEqual(
      servers
        .slice(1)
        .map(({ host, port }) => `${host}:${port}`)
        .sort(),
    );
    expect(await lease.release()).toBe('released');
  });
});
