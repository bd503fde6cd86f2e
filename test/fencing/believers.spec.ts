import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MysqlServer } from '../support/servers/mysql-server.js';
import { PostgresServer } from '../support/servers/postgres-server.js';
import { holdName, newKey, useLab } from '../support/redis/lab.js';
import { until } from '../support/async.js';
import {
  letBelieversWork,
  mysqlSession,
  postgresSession,
  type Isolation,
  type Outcome,
  type Session,
} from './believers.js';

const BELIEVERS = 4;
const ATTEMPTS = 240;

const lab = useLab();

/** Runs the experiment with a lock of four services, whose key an operator deletes before each acquire. */
const experiment = async (
  open: () => Promise<Session>,
  isolation: Isolation,
  fenced: boolean,
): Promise<Outcome> => {
  const services = Array.from({ length: BELIEVERS }, () => lab.open());
  const sessions = await Promise.all(services.map(open));
  const key = newKey();
  const takeLease = (believer: number) =>
    until(async () => {
      await lab.admin.del(holdName(key));
      await services[believer]!.locks.forceUnlock(key);
      return services[believer]!.locks.tryAcquire(key);
    });
  try {
    return await letBelieversWork(sessions, takeLease, { attempts: ATTEMPTS, isolation, fenced });
  } finally {
    await Promise.all(sessions.map((session) => session.close()));
  }
};

const DATABASES = [
  ['PostgreSQL', PostgresServer, postgresSession, ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE']],
  [
    'MariaDB or MySQL',
    MysqlServer,
    mysqlSession,
    ['READ UNCOMMITTED', 'READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'],
  ],
] as const;

describe.each(DATABASES)(
  'four processes that all believe to hold the lock, on %s',
  (_, Server, session, levels) => {
    let server: MysqlServer | PostgresServer;
    beforeAll(async () => {
      server = await Server.start();
    });
    afterAll(() => server?.stop());

    it.each(levels)('lose no update and commit in the order of their tokens, in %s', async (isolation) => {
      const outcome = await experiment(() => session(server.uri), isolation, true);
      const { committed, fenced, conflicts } = outcome;
      expect(outcome).toMatchObject({ lost: 0, inWrongOrder: 0 });
      expect(committed + fenced + conflicts).toBe(ATTEMPTS);
      expect(committed).toBeGreaterThan(0);
      expect(fenced + conflicts, 'the others were refused').toBeGreaterThan(0);
    });

    it('lose updates and commit in a wrong order without the fence', async () => {
      const { lost, inWrongOrder } = await experiment(() => session(server.uri), 'READ COMMITTED', false);
      expect(lost).toBeGreaterThan(0);
      expect(inWrongOrder).toBeGreaterThan(0);
    });
  },
);
