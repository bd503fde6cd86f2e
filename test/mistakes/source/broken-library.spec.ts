import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { keepForMsOf } from '../../../lib/core/settler.js';
import type { LockStore } from '../../../lib/core/lock-store.js';
import { breakLibrary } from './broken-library.js';

interface Loaded {
  readonly keepForMsOf: typeof keepForMsOf;
  readonly MemoryStore: new () => LockStore;
}

describe('a copy of the library with a mistake in it', () => {
  it('has the mistake, all its folders, and goes when it is disposed of', async () => {
    const edit = { in: 'keepForMsOf', find: 'keepUntil - now', replace: 'keepUntil + now' };
    const library = breakLibrary('a sign', [edit]);
    const loaded = await library.load<Loaded>('keepForMsOf', 'MemoryStore');
    expect(loaded.keepForMsOf(5, 3)).toBe(8);
    const store = new loaded.MemoryStore();
    expect(await store.inspect('exclusive', 'key')).toBeNull();
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
