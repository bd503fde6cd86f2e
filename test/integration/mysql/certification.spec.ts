import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import { MysqlDialect } from '../../../lib/stores/mysql/mysql-dialect.js';
import { SqlFailure, type Statement } from '../../../lib/stores/sql/sql.js';
import { SqlStore } from '../../../lib/stores/sql/sql.store.js';
import { MysqlLab, newKey } from '../../support/mysql/mysql-lab.js';
import { openLocksOn } from '../../support/stores/open-locks-on.js';

let lab: MysqlLab;
beforeAll(async () => {
  lab = await MysqlLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

/**
 * A service on a node of Galera that another node is always ahead of. There is no cluster here: each statement about the
 * table fails once as its COMMIT does there, and has changed nothing.
 */
const open = () => {
  const common = { runtime: systemRuntime(), commandTimeoutMs: 2_000, lanes: 1 };
  const connection = () => ({ uri: lab.server.uri });
  const dialect = new MysqlDialect({
    ...common,
    connection,
    table: 'nest_lock',
    pooled: false,
    timeoutMs: 2_000,
  });
  const connect = dialect.connect.bind(dialect);
  const lost = new Set<string>();
  dialect.connect = async () => {
    const session = await connect();
    const send = session.send.bind(session);
    session.send = <T>(statement: Statement<T>): Promise<T> => {
      const text = statement.sql.texts.join('?');
      if (!text.includes('nest_lock') || lost.has(text)) return send(statement);
      lost.add(text);
      const options = { cause: { errno: 1213 }, transient: true, keyOnly: true };
      return Promise.reject(new SqlFailure('Deadlock found', 'not-executed', options, session));
    };
    return session;
  };
  return lab.track(
    openLocksOn(new SqlStore(dialect, { ...common, migratesOnStart: false, place: 'a node' })),
  );
};

describe('a request that loses the certification of a cluster', () => {
  it('is sent again, and gets its lock or is told that it is taken', async () => {
    const { locks } = lab.open();
    const [key, free] = [newKey(), newKey()];
    const held = await locks.acquire(key);
    const loser = open();
    expect(await loser.locks.tryAcquire(key)).toBeNull();
    const lease = (await loser.locks.tryAcquire(free))!;
    await lease.extend(5_000);
    expect(await lease.release()).toBe('released');
    await held.release();
    expect(await loser.locks.permits(newKey(), { permits: 1 }).withPermit(() => 'ran')).toBe('ran');
  });
});
