import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PostgresStore, type PostgresStoreOptions } from '../../../lib/stores/postgres/postgres.store.js';
import { until } from '../../support/async.js';
import { newKey, PostgresLab } from '../../support/postgres/postgres-lab.js';

const TTL_MS = 60_000;

let lab: PostgresLab;
beforeAll(async () => {
  lab = await PostgresLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

const notesOf = (options?: PostgresStoreOptions) => lab.store(options).processes;

/** Address of a role with the rights that locks need, and no others. */
const smallestRole = async (): Promise<string> => {
  const role = newKey('role');
  await lab.query(
    `CREATE USER ${role} PASSWORD 'secret'; GRANT SELECT, INSERT, UPDATE, DELETE ON nest_lock TO ${role}`,
  );
  return lab.server.uriOf(role, 'secret');
};

describe('notes of processes in PostgreSQL', () => {
  it('show the host and the time of a hold to another process, whose role has only the rights for locks', async () => {
    const connectionString = await smallestRole();
    const options = { appName: 'shop' };
    const [one, two] = [lab.open(options, { connectionString }), lab.open(options, { connectionString })];
    const key = newKey();
    await one.locks.acquire(key, { leaseMs: 60_000 });
    const shown = async () => (await two.locks.inspect(key))?.holders[0];
    const isKnown = async (): Promise<boolean> => {
      const holder = await shown();
      return holder?.heldMs !== undefined && holder.process?.host !== undefined;
    };
    await until(isKnown, { what: 'the holder is known' });
    expect(await shown()).toMatchObject({
      process: { instanceId: one.locks.instanceId, host: hostname(), pid: process.pid, appName: 'shop' },
    });
    expect([...one.log, ...two.log]).toEqual([]);
  });

  it('are in no list of locks', async () => {
    const { locks } = lab.open({ keyPrefix: '' });
    await notesOf().write(randomUUID(), 'text', TTL_MS);
    expect(await locks.list()).toEqual({ locks: [], cursor: undefined });
  });

  it('of two schemas do not mix', async () => {
    const [schema, name] = [newKey('schema'), randomUUID()];
    await lab.query(`CREATE SCHEMA ${schema} AUTHORIZATION app`);
    await lab.store({ schema }).migrate();
    const [here, there] = [notesOf({ schema: 'public' }), notesOf({ schema })];
    await here.write(name, 'here', TTL_MS);
    await there.write(name, 'there', TTL_MS);
    await there.remove(name);
    expect([await here.read([name]), await there.read([name])]).toEqual([['here'], [undefined]]);
  });

  it('need no connection that listens, unless a process listens', async () => {
    const notes = notesOf();
    const name = randomUUID();
    await notes.write(name, 'text', TTL_MS);
    await notes.send!(name, 'question');
    expect(await lab.backends('LISTEN')).toEqual([]);
    notes.listen!(name, () => undefined);
    await until(async () => (await lab.backends('LISTEN')).length === 1, { what: 'it listens' });
  });
});

describe('a message to a process in PostgreSQL', () => {
  it('has at most the bytes of a notification: a longer one is not sent', async () => {
    const [one, two, name] = [notesOf(), notesOf(), randomUUID()];
    const received: string[] = [];
    one.listen!(name, (text) => received.push(text));
    const room = 7_999 - `nest_redis_lock:process:${name} `.length;
    const longest = 'ä'.repeat(room / 2) + (room % 2 === 1 ? 'x' : '');
    await until(
      async () => {
        expect(await two.send!(name, longest)).toBe(true);
        return received.length > 0;
      },
      { what: 'the message arrives' },
    );
    expect(received[0]).toBe(longest);
    expect(await two.send!(name, `${longest}x`)).toBe(false);
  });

  it('arrives again after the connection was lost, without a waiter', async () => {
    const [one, two, name] = [notesOf(), notesOf(), randomUUID()];
    const received: string[] = [];
    one.listen!(name, (text) => received.push(text));
    const arrives = (text: string) =>
      until(async () => (await two.send!(name, text)) && received.includes(text), { what: 'it arrives' });
    await arrives('before');
    const [pid] = await lab.backends('LISTEN');
    await lab.query(`SELECT pg_terminate_backend(${pid}, 1000)`);
    await arrives('after');
  });

  it('is not offered where no notification can be received', () => {
    const { processes } = new PostgresStore({ connectionString: lab.server.uri, pooled: true });
    expect([processes.listen, processes.send]).toEqual([undefined, undefined]);
  });
});
