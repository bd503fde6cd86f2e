import { beforeEach, describe, expect, it } from 'vitest';
import { LockConfigurationError } from '../../../lib/core/errors/lock.errors.js';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { defaultCall } from '../../../lib/core/settings/lock-call.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import type { StoreHost } from '../../../lib/core/seam/lock-store.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { Log } from '../../support/core/core-under-test.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

const DOWN = new StoreFailure('connection refused', 'not-executed', { passing: true });
const NEVER = new LockConfigurationError('The table nest_lock does not exist.');

/** A store in memory, whose opening does what the test says. */
class OpenedStore extends MemoryStore {
  readonly hosts: StoreHost[] = [];
  diagnoses = 0;
  opens: (() => unknown)[] = [];
  warns: () => readonly string[] = () => ['a warning'];

  override open(host?: StoreHost): Promise<void> {
    this.hosts.push(host!);
    return (this.opens.shift() ?? (() => Promise.resolve()))() as Promise<void>;
  }

  async diagnose(): Promise<readonly string[]> {
    this.diagnoses++;
    await Promise.resolve();
    return this.warns();
  }
}

let store: OpenedStore;
let log: Log;
let manager: LockManager;

const settings = resolveSettings({ keyPrefix: '' });
const lock = async (key: string): Promise<void> => {
  await manager.withLock([key], defaultCall(settings), () => undefined);
  await settled();
};
const throws = (error: unknown) => () => {
  throw error;
};
const rejects = (error: unknown) => () => Promise.reject(error);

beforeEach(() => {
  store = new OpenedStore();
  log = new Log();
  manager = new LockManager(store, settings, log, new VirtualRuntime());
});

describe('the opening of a store', () => {
  it('comes with the start of the app, which logs what the store warns of', async () => {
    await manager.open();
    await lock('a');
    expect([store.hosts.length, store.diagnoses, log.lines]).toEqual([1, 1, ['a warning']]);
  });

  it('comes with the first request of a service without a start', async () => {
    await lock('a');
    await lock('b');
    expect([store.hosts.length, log.lines]).toEqual([1, []]);
  });

  it.each([
    ['rejects', rejects(NEVER)],
    ['throws', throws(NEVER)],
  ])('stops the start when the store %s because it can never work', async (_how, open) => {
    store.opens = [open];
    await expect(manager.open()).rejects.toBe(NEVER);
  });

  it.each([
    ['rejects with', rejects(new TypeError('a bug'))],
    ['throws', throws(new TypeError('a bug'))],
  ])('stops the start when the store %s another error', async (_how, open) => {
    store.opens = [open];
    await expect(manager.open()).rejects.toThrow('a bug');
  });

  it('does not stop the start when the store cannot be reached; the first lock repeats it', async () => {
    store.opens = [rejects(DOWN)];
    await manager.open();
    expect(log.lines).toEqual([expect.stringMatching(/^The lock store does not work: connection refused/)]);
    await lock('a');
    await lock('b');
    expect(store.hosts).toHaveLength(2);
    expect(log.lines.slice(1)).toEqual([expect.stringMatching(/works again/), 'a warning']);
  });

  it('repeats the diagnosis once, at the first lock', async () => {
    let isDown = true;
    store.warns = () => {
      if (isDown) throw DOWN;
      return ['a warning'];
    };
    await manager.open();
    isDown = false;
    for (const key of ['a', 'b', 'c']) await lock(key);
    expect(store.diagnoses).toBe(2);
    expect(log.lines.filter((line) => line === 'a warning')).toHaveLength(1);
  });

  it('repeats a diagnosis that goes on failing once, and not at every lock', async () => {
    store.warns = throws(DOWN);
    await manager.open();
    for (const key of ['a', 'b', 'c']) await lock(key);
    expect(store.diagnoses).toBe(2);
  });

  it.each([
    ['can never work', rejects(NEVER), NEVER.message],
    ['has a bug', throws(new TypeError('a bug')), 'a bug'],
    ['returns no promise', () => undefined, undefined],
  ])('at a request says once in the log that a store %s', async (_why, open, logged) => {
    store.opens = [rejects(DOWN), open];
    for (const key of ['a', 'b', 'c']) await lock(key);
    expect(log.lines).toEqual(logged ? [expect.stringContaining(logged)] : []);
    expect(store.hosts).toHaveLength(2);
  });

  it('gives a store the same service each time', async () => {
    store.opens = [rejects(DOWN)];
    await lock('a');
    await lock('b');
    expect(new Set(store.hosts).size).toBe(1);
  });
});
