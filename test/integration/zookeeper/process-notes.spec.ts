import { createHash, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ZooKeeperStoreOptions } from '../../../lib/stores/zookeeper/zookeeper.store.js';
import { until } from '../../support/async.js';
import { newKey, ZooKeeperLab } from '../../support/zookeeper/zookeeper-lab.js';

const TTL_MS = 60_000;
const FOLDER = '%nest-redis-lock';
const IDENTITY = 'app:secret';

/** An ACL for one identity, as a server stores it. */
const aclFor = (identity: string) => {
  const [user] = identity.split(':');
  const digest = createHash('sha1').update(identity).digest('base64');
  return [{ rights: 31, scheme: 'digest', id: `${user}:${digest}` }];
};

let lab: ZooKeeperLab;
beforeAll(async () => {
  lab = await ZooKeeperLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

const notesOf = (options?: Partial<ZooKeeperStoreOptions>) => lab.store(options).processes;

describe('notes of processes in ZooKeeper', () => {
  it('show the host and the time of a hold to another process', async () => {
    const [one, two] = [lab.open({ appName: 'shop' }), lab.open()];
    const key = newKey();
    await one.locks.acquire(key);
    const shown = async () => (await two.locks.inspect(key))?.holders[0];
    const isKnown = async (): Promise<boolean> => {
      const holder = await shown();
      return holder?.heldMs !== undefined && holder.process?.host !== undefined;
    };
    await until(isKnown, { what: 'the holder is known' });
    expect(await shown()).toMatchObject({
      process: { instanceId: one.locks.instanceId, host: hostname(), pid: process.pid, appName: 'shop' },
    });
    expect([...one.log, ...two.log].filter((line) => line.includes('Other processes'))).toEqual([]);
  });

  it('of two base paths do not mix, and are in no list of locks', async () => {
    const [basePath, name] = [`/${newKey('base')}`, randomUUID()];
    const [here, there] = [notesOf(), notesOf({ basePath })];
    await here.write(name, 'here', TTL_MS);
    await there.write(name, 'there', TTL_MS);
    await there.remove(name);
    expect([await here.read([name]), await there.read([name])]).toEqual([['here'], [undefined]]);
    const { locks } = lab.open({ keyPrefix: '' }, { basePath });
    expect(await lab.children(basePath)).toEqual([FOLDER]);
    expect(await locks.list()).toEqual({ locks: [], cursor: undefined });
  });

  it('are removed by their process when their time is over', async () => {
    const basePath = `/${newKey('base')}`;
    const [notes, kept] = [notesOf({ basePath }), randomUUID()];
    await notes.write(kept, 'text', 1);
    await notes.write(kept, 'text', TTL_MS);
    await notes.write(randomUUID(), 'text', 1);
    await until(async () => (await lab.children(`${basePath}/${FOLDER}`)).length === 1, {
      what: 'one is removed',
    });
    expect(await notes.read([kept])).toEqual(['text']);
  });

  it('are in no way of a lock in the base path itself, with the option path', async () => {
    const basePath = `/${newKey('base')}`;
    const path = () => basePath;
    await notesOf({ basePath, path }).write(randomUUID(), 'text', TTL_MS);
    const { locks } = lab.open({}, { basePath, path });
    await locks.withLock('a', () => undefined);
    expect(await lab.children(`/${FOLDER}`)).toHaveLength(1);
  });

  it('belong to the identity of their process: others know nothing of it', async () => {
    const [basePath, name] = [`/${newKey('base')}`, randomUUID()];
    const [own, foreign] = [notesOf({ basePath, auth: { digest: IDENTITY } }), notesOf({ basePath })];
    await lab.createNode(basePath);
    await lab.createNode(`${basePath}/${FOLDER}`);
    await own.write(name, 'text', TTL_MS);
    own.listen(name, () => undefined);
    await until(() => own.send(name, 'question'), { what: 'it listens' });
    expect(await foreign.read([name])).toEqual([undefined]);
    expect(await foreign.send(name, 'question')).toBe(false);
  });

  it('without the rights for them: locks work, and one warning names the rights', async () => {
    const basePath = `/${newKey('base')}`;
    await lab.createNode(basePath);
    await lab.createNode(`${basePath}/${FOLDER}`, aclFor(IDENTITY));
    const { locks, log } = lab.open({}, { basePath });
    await locks.acquire('a');
    await until(() => log.some((line) => line.includes(FOLDER)), { what: 'it warns' });
    expect(log.filter((line) => line.includes(FOLDER))).toEqual([
      expect.stringMatching(
        /Other processes cannot see .* does not let this app use "\/base.*create, delete and read.*holderInfo: false/,
      ),
    ]);
    await locks.withLock('b', () => undefined);
  });
});

describe('a message to a process in ZooKeeper', () => {
  it('reaches a process that listens, one after the other, and leaves no watch and no node', async () => {
    const basePath = `/${newKey('base')}`;
    const [one, two, name] = [notesOf({ basePath }), notesOf({ basePath }), randomUUID()];
    expect(await two.send(name, 'too early')).toBe(false);
    const received: string[] = [];
    const stop = one.listen(name, (text) => received.push(text));
    for (const text of ['first', 'second', 'third']) {
      await until(() => two.send(name, text), { what: 'it listens' });
      await until(() => received.includes(text), { what: 'the message arrives' });
    }
    expect(received).toEqual(['first', 'second', 'third']);
    expect(await two.send(name, 'x'.repeat(500_001))).toBe(false);
    stop();
    await until(async () => (await lab.children(`${basePath}/${FOLDER}`)).length === 0, {
      what: 'its node is removed',
    });
    expect(await lab.server.command('wchs')).toMatch(/Total watches:0/);
  });

  it('arrives again after the session has ended and the process has written its note again', async () => {
    const proxy = await lab.proxy();
    const session = lab.sessionThrough(proxy);
    const [one, two, name] = [notesOf({ connect: proxy.address }), notesOf(), randomUUID()];
    const received: string[] = [];
    one.listen(name, (text) => received.push(text));
    await until(() => two.send(name, 'before'), { what: 'it listens' });
    await until(() => received.includes('before'), { what: 'the message arrives' });
    await session.end(lab.server);
    expect(await two.send(name, 'lost')).toBe(false);
    // The old session may not be known as ended yet.
    const writes = () => one.write(name, 'text', TTL_MS).then(() => two.send(name, 'after'));
    await until(() => writes().catch(() => false), { what: 'it listens again' });
    await until(() => received.includes('after'), { what: 'the message arrives' });
  });
});
