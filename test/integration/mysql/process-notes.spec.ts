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
  it('show the host and the time of a hold to another process, whose user has only the rights for locks', async () => {
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
    const isKnown = async (): Promise<boolean> => {
      const holder = await shown();
      return holder?.heldMs !== undefined && holder.process?.host !== undefined;
    };
    await until(isKnown, { what: 'the holder is known' });
    expect(await shown()).toMatchObject({
      label: 'acquire',
      process: {
        ...{ instanceId: one.locks.instanceId, client: 'node', appName },
        ...{ host: hostname(), pid: process.pid },
      },
    });
    expect([...one.log, ...two.log]).toEqual([]);
  });

  it('tell of more holds in a list than one note has room for', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const prefix = `${newKey('many')}:`;
    const label = 'x'.repeat(100);
    for (let i = 0; i < 30; i += 1) await one.locks.acquire(`${prefix}${i}`, { leaseMs: 60_000, label });
    const labels = async () => {
      const { locks } = await two.locks.list({ prefix });
      return locks.filter(({ holders }) => holders[0]?.label === label).length;
    };
    await until(async () => (await labels()) === 30, { what: 'all labels are known' });
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

describe('a message to a process in MySQL', () => {
  it('arrives at once, also after the connection was lost, and leaves no note', async () => {
    const [one, two, name] = [lab.store().processes, lab.store().processes, randomUUID()];
    const received: string[] = [];
    one.listen!(name, (text) => received.push(text));
    const arrives = (text: string) =>
      until(async () => (await two.send!(name, text)) && received.includes(text), { what: 'it arrives' });
    await arrives('before');
    // The server notices only later that a process has gone.
    const asleep = () => lab.underWay(`%SLEEP(%${Buffer.from(name).toString('hex')}%`);
    await until(async () => (await asleep()).length === 1, { what: 'it sleeps again' });
    const sentAt = performance.now();
    expect(await two.send!(name, 'at once')).toBe(true);
    await until(() => received.includes('at once'), { what: 'it arrives' });
    expect(performance.now() - sentAt).toBeLessThan(2_500);
    const [id] = await until(async () => ((await asleep()).length === 1 ? asleep() : undefined), {
      what: 'it sleeps again',
    });
    await lab.query(`KILL CONNECTION ${id}`);
    await arrives('after');
    const notes = () => lab.query(`SELECT name FROM nest_lock WHERE name LIKE '%${name}%'`);
    await until(async () => (await notes()).length === 0, { what: 'no note is left' });
  });

  it('is sent to no process that has stopped listening', async () => {
    const [one, two, name] = [lab.store().processes, lab.store().processes, randomUUID()];
    const stop = one.listen!(name, () => undefined);
    await until(() => two.send!(name, 'text'), { what: 'it listens' });
    stop();
    await until(async () => !(await two.send!(name, 'text')), { what: 'it listens no more' });
  });

  it('is not offered behind a proxy that shares connections', () => {
    const { processes } = lab.store({ pooled: true });
    expect([processes.listen, processes.send]).toEqual([undefined, undefined]);
  });
});
