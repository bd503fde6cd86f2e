import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { deadlineOf } from '../../../lib/core/wait/wait.js';
import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import { breakLibrary } from './broken-library.js';

interface Loaded {
  readonly deadlineOf: typeof deadlineOf;
  readonly MemoryStore: new () => LockStore;
}

describe('a copy of the library with a mistake in it', () => {
  it('has the mistake, all its folders, and goes when it is disposed of', async () => {
    const edit = {
      in: 'deadlineOf',
      find: 'wait.startedAt + wait.waitMs',
      replace: 'wait.startedAt - wait.waitMs',
    };
    const library = breakLibrary('a sign', [edit]);
    const loaded = await library.load<Loaded>('deadlineOf', 'MemoryStore');
    const wait = { key: 'k', startedAt: 5, waitMs: 3, signal: undefined, nested: false };
    expect(loaded.deadlineOf(wait)).toBe(2);
    const store = new loaded.MemoryStore();
    expect(await store.inspect('key')).toBeNull();
    await store.close();
    expect(existsSync(fileURLToPath(library.url))).toBe(true);
    library[Symbol.dispose]();
    expect(existsSync(fileURLToPath(library.url))).toBe(false);
  });

  it('is not made when the mistake has no place', () => {
    expect(() => breakLibrary('a mistake', [{ in: 'gone', find: '1', replace: '2' }])).toThrow(
      '"a mistake" has no place in the source: nothing in lib/core or lib/stores is called gone',
    );
  });
});
