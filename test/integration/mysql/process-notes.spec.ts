import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { MysqlLab, newKey } from '../../support/mysql/mysql-lab.js';

const TTL_MS = 60_000;

let lab: MysqlLab;
beforeAll(async () => {
  lab = await MysqlLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

describe('notes of processes in MySQL', () => {
  it('show the host of a holder to another process, whose user has only the rights for locks', async () => {
    const user = newKey('user');
    await lab.query(
      `CREATE USER '${user}'@'%' IDENTIFIED BY 'secret'; GRANT SELECT, INSERT, UPDATE, DELETE ON app.nest_lock TO '${user}'@'%'`,
    );
    const uri = lab.server.uriOf(user, 'secret');
    // The longest record: each character has four bytes.
    const appName = '🔒'.repeat(50);
    const [one, two] = [lab.open({ appName }, { uri }), lab.open({}, { uri })];
    const key = newKey();
    await one.locks.acquire(key, { leaseMs: 60_000 });
    const shown = async () => (await two.locks.inspect(key))?.holders[0];
    await until(async () => (await shown())?.process?.host !== undefined, { what: 'the holder is known' });
    const holder = await shown();
    expect(holder?.process).toEqual({
      ...{ instanceId: one.locks.instanceId, client: 'node', appName },
      ...{ host: hostname(), pid: process.pid },
    });
    // There are no messages.
    expect(holder?.heldMs).toBeUndefined();
    expect([...one.log, ...two.log]).toEqual([]);
  });

  it('are in no list of locks', async () => {
    const { locks } = lab.open({ keyPrefix: '' });
    await lab.store().processes.write(randomUUID(), 'text', TTL_MS);
    expect(await locks.list()).toEqual({ locks: [], cursor: undefined });
  });

  it('of two tables do not mix', async () => {
    const [table, name] = [newKey('table'), randomUUID()];
    await lab.store({ table }).migrate();
    const [here, there] = [lab.store().processes, lab.store({ table }).processes];
    await here.write(name, 'here', TTL_MS);
    await there.write(name, 'there', TTL_MS);
    await there.remove(name);
    expect([await here.read([name]), await there.read([name])]).toEqual([['here'], [undefined]]);
  });
});
