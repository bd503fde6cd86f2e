import { createTestingLocks } from 'nest-redis-lock/testing';
import { describe, expect, it } from 'vitest';
import type { Invocation } from '../../../lib/cli/arguments.js';
import { runCommand, type Locks } from '../../../lib/cli/commands.js';
import type { InspectedKey } from '../../../lib/core/holders/holders.js';
import type { ListedLock, LockService } from '../../../lib/index.js';

const OWNER = /[\da-f-]{36}:\d+/g;

type Answer = boolean | (() => Promise<boolean>);

/** Runs a command. Without an answer there is no terminal. */
const run = async (locks: Locks, given: Partial<Invocation>, answer?: Answer) => {
  const shown = { out: '', note: '', question: '' };
  const address = { store: 'redis', sources: [] } as const;
  const base = {
    command: 'who',
    key: 'order:42',
    keyPrefix: undefined,
    json: false,
    yes: false,
    secrets: [],
  } as const;
  const exitCode = await runCommand({ ...base, address, ...given }, locks, {
    columns: undefined,
    out: (text) => (shown.out += text),
    note: (text) => (shown.note += text),
    ask:
      answer === undefined
        ? undefined
        : async (question) => {
            shown.question = question;
            return typeof answer === 'function' ? answer() : answer;
          },
  });
  return {
    exitCode,
    ...shown,
    out: shown.out.replace(OWNER, 'OWNER'),
    note: shown.note.replace(OWNER, 'OWNER'),
  };
};

/** The methods of a service, as an object of which a test replaces some. */
const overMemory = (locks = createTestingLocks()): Locks => ({
  inspect: (key) => locks.inspect(key),
  list: (options) => locks.list(options),
  forceUnlock: (key) => locks.forceUnlock(key),
});

const stateOf = (state: InspectedKey): Locks => ({
  ...overMemory(),
  inspect: async () => state,
});
const hold = { owner: 'x:1', count: 1, remainingMs: 900 };

describe('the command who', () => {
  it('shows the holders, and that a key is free', async () => {
    const locks = createTestingLocks();
    expect(await run(locks, {})).toMatchObject({ exitCode: 1, out: 'order:42 is free.\n' });
    expect(await run(locks, { json: true })).toMatchObject({ exitCode: 1, out: 'null\n' });
    await locks.acquire('order:42', { leaseMs: 95_400_000 });
    const { exitCode, out } = await run(locks, {});
    expect([exitCode, out]).toEqual([
      0,
      expect.stringMatching(/^KEY .*\norder:42 +exclusive +.+ +24 h|^KEY/),
    ]);
    expect(out).toMatch(/\norder:42 {2}exclusive {2}\S+ +1 d 2 h .*\nNo caller is queued\.\n$/);
  });

  it('writes JSON in which a lease without an end is null', async () => {
    const locks = stateOf({ kind: 'exclusive', holders: [{ ...hold, remainingMs: Infinity }], waiting: [] });
    const { exitCode, out } = await run(locks, { json: true });
    expect([exitCode, JSON.parse(out)]).toEqual([
      0,
      { key: 'order:42', kind: 'exclusive', holders: [{ ...hold, remainingMs: null }], waiting: [] },
    ]);
  });
});

it.each(['who', 'queue'] as const)(
  '%s finds a key that was copied from Redis, with its prefix',
  async (command) => {
    const locks = createTestingLocks();
    await locks.acquire('order:42');
    const { exitCode, out } = await run(locks, { command, key: 'lock:order:42' });
    expect(exitCode).toBe(0);
    expect(out).toContain('\norder:42 ');
    expect(await run(locks, { command, key: 'lock:other' })).toMatchObject({ out: 'lock:other is free.\n' });
  },
);

it('unlock ends no other key than it was given, and says how to give the one that is held', async () => {
  const locks = createTestingLocks();
  await locks.acquire('order:42');
  const { exitCode, out } = await run(locks, { command: 'unlock', key: 'lock:order:42', yes: true });
  expect([exitCode, out]).toEqual([
    1,
    'lock:order:42 is free.\norder:42 is held: give the key without its prefix.\n',
  ]);
  expect(await locks.isLocked('order:42')).toBe(true);
});

it('JSON has no character that steers a terminal', async () => {
  const owner = 'x\u009b2J\u2028\u{e0041}';
  const locks = stateOf({ kind: 'exclusive', holders: [{ ...hold, owner }], waiting: [] });
  const { out } = await run(locks, { json: true });
  expect(out).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}]/u);
  expect((JSON.parse(out) as typeof hold & { holders: (typeof hold)[] }).holders[0]!.owner).toBe(owner);
});

describe('queue', () => {
  it('shows holders and queued owners in order, with their processes', async () => {
    const process = { instanceId: 'y', client: 'node', host: 'web-1', pid: 4711, appName: 'shop' } as const;
    const state = { kind: 'fair', holders: [hold], waiting: ['y:2', 'z:3'] } as const;
    const locks = stateOf({ ...state, waitingProcesses: [process, undefined] });
    expect(await run(locks, { command: 'queue' })).toMatchObject({
      exitCode: 0,
      out: [
        'KEY       KIND  STATE  OWNER  REMAINING  HOST   PID   APP',
        'order:42  fair  holds  x:1    900 ms',
        'order:42        1.     y:2               web-1  4711  shop',
        'order:42        2.     z:3',
        '',
      ].join('\n'),
    });
  });
});

describe('list', () => {
  const listed = (key: string, owner = 'x:1'): ListedLock => ({
    ...{ key, kind: 'exclusive', holders: [{ ...hold, owner }], waiting: [] },
  });
  const pages: Readonly<Record<string, { locks: ListedLock[]; cursor: string | undefined }>> = {
    first: { locks: [listed('b'), listed('a')], cursor: 'second' },
    second: { locks: [], cursor: 'third' },
    third: { locks: [listed('a', 'later:2')], cursor: undefined },
  };

  it('reads all pages, also after an empty one, and shows each key once', async () => {
    const locks: Locks = {
      ...overMemory(),
      list: async (options) => pages[options?.cursor ?? 'first']!,
    };
    const { exitCode, out } = await run(locks, { command: 'list', key: '' });
    expect([exitCode, out.split('\n').slice(1)]).toEqual([
      0,
      ['a    exclusive  later:2  900 ms     0', 'b    exclusive  x:1      900 ms     0', '2 keys held.', ''],
    ]);
  });

  it('shows a key without a holder for which callers are queued', async () => {
    const free: ListedLock = { key: 'c', kind: 'fair', holders: [], waiting: ['x:3', 'y:1'] };
    const locks: Locks = {
      ...overMemory(),
      list: async () => ({ locks: [listed('a'), free], cursor: undefined }),
    };
    const { exitCode, out } = await run(locks, { command: 'list', key: '' });
    expect([exitCode, out.split('\n').slice(1)]).toEqual([
      0,
      [
        'a    exclusive  x:1    900 ms     0',
        'c    fair                         2',
        '1 key held, 1 free with callers queued.',
        '',
      ],
    ]);
  });

  it('passes the prefix on, and says that no key is held', async () => {
    const locks = createTestingLocks();
    await locks.acquire('order:1');
    const list = { command: 'list', key: 'user:' } as const;
    expect(await run(locks, list)).toMatchObject({ exitCode: 1, out: 'No key is held.\n' });
    expect(await run(locks, { ...list, json: true })).toMatchObject({ exitCode: 1, out: '[]\n' });
    expect(await run(locks, { ...list, key: 'order:' })).toMatchObject({ exitCode: 0 });
  });
});

describe('unlock', () => {
  const unlock = { command: 'unlock' } as const;
  const held = async (): Promise<LockService> => {
    const locks = createTestingLocks();
    await locks.acquire('order:42');
    return locks;
  };

  it('shows the holders, asks, ends the holds, and says how many', async () => {
    const locks = createTestingLocks();
    for (let permit = 0; permit < 2; permit += 1) await locks.permits('order:42', { permits: 2 }).acquire();
    const { exitCode, out, note, question } = await run(locks, unlock, true);
    expect([exitCode, out]).toEqual([0, 'Ended 2 holds of order:42.\n']);
    expect(question).toBe('End 2 holds of order:42? [y/N] ');
    expect(note).toContain('order:42  permit');
    expect(note).toContain('works on until its next renewal');
    expect(await locks.isLocked('order:42')).toBe(false);
  });

  it('ends nothing when the answer is no', async () => {
    const locks = await held();
    expect(await run(locks, unlock, false)).toMatchObject({ exitCode: 1, out: '' });
    expect(await locks.isLocked('order:42')).toBe(true);
  });

  it('refuses without a terminal, except with --yes', async () => {
    const locks = await held();
    await expect(run(locks, unlock)).rejects.toThrow('this is no terminal. Pass --yes to agree.');
    expect(await locks.isLocked('order:42')).toBe(true);
    expect(await run(locks, { ...unlock, yes: true, json: true })).toMatchObject({
      exitCode: 0,
      out: expect.stringContaining('"ended": 1') as unknown,
    });
    expect(await locks.isLocked('order:42')).toBe(false);
  });

  it('ends nothing that was not shown: another caller got the key before the answer', async () => {
    const locks = createTestingLocks();
    const lease = await locks.acquire('order:42');
    const answer = async (): Promise<boolean> => {
      await lease.release();
      await locks.acquire('order:42');
      return true;
    };
    expect(await run(locks, unlock, answer)).toMatchObject({
      ...{
        exitCode: 1,
        note: expect.stringContaining('Another caller has got the key meanwhile.') as unknown,
      },
    });
    expect(await locks.isLocked('order:42')).toBe(true);
  });

  it('does not ask about a string of another library: that is deleted by hand', async () => {
    const locks = stateOf({
      kind: 'exclusive',
      heldAs: 'foreign',
      holders: [{ ...hold, owner: '' }],
      waiting: [],
    });
    const { exitCode, out, note, question } = await run(locks, unlock, true);
    expect([exitCode, question]).toEqual([1, '']);
    expect(note).toMatch(/\norder:42 {2}string {2}900 ms\n$/);
    expect(out).toMatch(/^order:42 has a string.* delete the string by hand\.\n$/);
  });

  it('says that the key is free, before a question and after it', async () => {
    const locks = createTestingLocks();
    const free = { exitCode: 1, out: 'order:42 is free.\n', question: '' };
    expect(await run(locks, unlock, true)).toMatchObject(free);
    const lease = await locks.acquire('order:42');
    const answer = async (): Promise<boolean> => (await lease.release(), true);
    const { exitCode, note } = await run(locks, unlock, answer);
    expect([exitCode, note]).toEqual([1, expect.stringContaining('order:42 is free. Nothing was ended.')]);
  });
});
