import { mkdtemp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Curator } from '../../support/curator/curator.js';
import { guardFolder } from '../../support/process-guard.js';
import { SCRATCH } from '../../support/scratch.js';
import { LOAD_MS, roundsFor } from '../extent.js';
import { overlapsOf } from './contest.js';
import { CuratorSides } from './sides.js';

const SESSION_MS = 4_000;
/** A wait that has to be in vain. */
const SHORT_WAIT_MS = 200;
const PROMPT_MS = 1_000;
/** The server notices expired sessions once a tick. A busy machine takes longer. */
const EXPIRY_MS = 3_000;

/** The tests with Node are built on what these two processes of Java do without it. */
describe('two Java processes with Curator', () => {
  let sides: CuratorSides;
  let first: Curator;
  let second: Curator;
  let names = 0;
  const newName = () => `/smoke/lock-${(names += 1)}`;

  beforeAll(async () => {
    sides = await CuratorSides.start();
    first = await sides.java({ sessionTimeoutMs: SESSION_MS });
    second = await sides.java({ sessionTimeoutMs: SESSION_MS });
  });
  afterAll(() => sides[Symbol.asyncDispose]());

  it('exclude each other with a mutex, which goes to the waiter at the release', async () => {
    const name = newName();
    await first.send('lock', { name });
    expect(await second.send('tryLock', { name, waitMs: SHORT_WAIT_MS })).toBe(false);
    const waiting = second.send('lock', { name });
    await second.asleep();
    const releasedAt = await first.send('unlock', { name });
    const acquiredAt = (await waiting) as number;
    expect(acquiredAt).toBeGreaterThanOrEqual(releasedAt - 1);
    expect(acquiredAt - releasedAt).toBeLessThan(PROMPT_MS);
    await expect(first.send('unlock', { name })).rejects.toThrow('IllegalMonitorState');
    await second.send('unlock', { name });
  });

  it.each(['file', 'node'])(
    'lose no update of a counter in a %s that both increment',
    async (place) => {
      const folder = await mkdtemp(join(SCRATCH, 'nest-redis-lock-curator-'));
      guardFolder(folder);
      const name = newName();
      const file = join(folder, 'counter');
      const counter = `${name}-counter`;
      const threads = 4;
      const load = { name, threads, rounds: roundsFor(4 * threads) };
      const where = place === 'file' ? { file } : { counter };
      await Promise.all([first, second].map((java) => java.send('count', { ...load, ...where })));
      const total = place === 'file' ? await readFile(file, 'utf8') : await first.send('read', { counter });
      expect(Number(total)).toBe(2 * threads * load.rounds);
    },
    2 * LOAD_MS,
  );

  it('let two of five workers in, and three give up, if the third turn comes too late', async () => {
    const work = { name: newName(), workers: 5, waitMs: 1_500, workMs: 1_000 };
    expect(await first.send('demo', work)).toEqual({ entered: 2, gaveUp: 3 });
  });

  it('see the same participants, and tokens that grow from holder to holder', async () => {
    const name = newName();
    await first.send('lock', { name });
    const waiting = second.send('lock', { name });
    await second.asleep();
    const node = await first.send('node', { name });
    const participants = await first.send('participants', { name });
    expect(participants).toEqual([node, expect.stringContaining('-lock-')]);
    expect(await second.send('participants', { name, thread: 'observer' })).toEqual(participants);
    const before = (await first.send('token', { name }))!;
    await first.send('unlock', { name });
    await waiting;
    expect(await second.send('token', { name })).toBeGreaterThan(before);
    expect(await first.send('token', { name })).toBeNull();
    await second.send('unlock', { name });
  });

  it('ask each other to release a revocable mutex', async () => {
    const name = newName();
    await first.send('lock', { name, revocable: true });
    expect(await second.send('revoke', { name })).toBe(await first.send('node', { name }));
    expect(await first.event('revoke', (event) => event.name === name)).toMatchObject({ kind: 'mutex' });
    await first.send('unlock', { name });
    expect(await second.send('revoke', { name })).toBeNull();
  });

  it('share a read-write lock as readers, and downgrade from writer to reader', async () => {
    const name = newName();
    const [reader, writer] = [{ name, kind: 'read' } as const, { name, kind: 'write' } as const];
    await first.send('lock', reader);
    expect(await second.send('tryLock', { ...reader, waitMs: PROMPT_MS })).toBe(true);
    expect(await second.send('tryLock', { ...writer, waitMs: SHORT_WAIT_MS, thread: 'writer' })).toBe(false);
    await first.send('unlock', reader);
    await second.send('unlock', reader);

    await first.send('lock', writer);
    expect(await second.send('tryLock', { ...reader, waitMs: SHORT_WAIT_MS })).toBe(false);
    await first.send('lock', reader);
    await first.send('unlock', writer);
    expect(await second.send('tryLock', { ...reader, waitMs: PROMPT_MS })).toBe(true);
    await second.send('unlock', reader);
    await first.send('unlock', reader);
  });

  it('share a semaphore up to its number of leases', async () => {
    const semaphore = { name: newName(), kind: 'semaphore', leases: 2 } as const;
    await first.send('lock', semaphore);
    await first.send('lock', semaphore);
    expect(await second.send('tryLock', { ...semaphore, waitMs: SHORT_WAIT_MS })).toBe(false);
    expect(await second.send('participants', semaphore)).toHaveLength(2);
    await first.send('unlock', semaphore);
    expect(await second.send('tryLock', { ...semaphore, waitMs: PROMPT_MS })).toBe(true);
    await second.send('unlock', semaphore);
    await first.send('unlock', semaphore);
  });

  it('exclude each other with a semaphore mutex, and with a lock of several paths', async () => {
    const paths = [newName(), newName()];
    for (const one of [
      { kind: 'semaphore-mutex', name: newName() },
      { kind: 'multi', paths },
    ] as const) {
      await first.send('lock', one);
      expect(await second.send('tryLock', { ...one, waitMs: SHORT_WAIT_MS })).toBe(false);
      await first.send('unlock', one);
      expect(await second.send('tryLock', { ...one, waitMs: PROMPT_MS })).toBe(true);
      await second.send('unlock', one);
    }
  });

  it('never overlap in sections of a contended mutex', async () => {
    const contest = { name: newName(), threads: 3, workMs: 2, forMs: 500 };
    const had = await Promise.all([first, second].map((java) => java.send('contend', contest)));
    expect(overlapsOf(had.flat())).toEqual([]);
    expect(had.flat().filter(({ served }) => served === 0)).toEqual([]);
  });

  it('get a mutex from a process that was killed when its session expires', async () => {
    const name = newName();
    const victim = await sides.java({ sessionTimeoutMs: SESSION_MS });
    await victim.send('lock', { name });
    const waiting = first.send('lock', { name });
    await first.asleep();
    const killedAt = Date.now();
    await victim.kill();
    expect(((await waiting) as number) - killedAt).toBeLessThan(SESSION_MS + EXPIRY_MS);
    await first.send('unlock', { name });
  });
});
