import { describe, expect, it } from 'vitest';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { readQueueKeep } from '../../../lib/stores/redis/kinds/exclusive/replies.js';
import { readFairEntries } from '../../../lib/stores/redis/kinds/fair/replies.js';
import { readReadWriteKeep } from '../../../lib/stores/redis/kinds/read-write/replies.js';

describe('a reply for a queue entry that no script gives', () => {
  it.each([
    ['exclusive', (reply: unknown) => readQueueKeep([reply], [false])],
    ['fair', (reply: unknown) => readFairEntries([reply], 1)],
    ['read-write', (reply: unknown) => readReadWriteKeep([reply], 1)],
  ])('is a store failure with an unknown outcome, for this entry only: %s', (_kind, read) => {
    for (const reply of [7, null, [1, 2, 3]]) {
      const [entry] = read(reply);
      expect(entry).toMatchObject({ status: 'failed', cause: { outcome: 'unknown', passing: false } });
      expect((entry as { cause: unknown }).cause).toBeInstanceOf(StoreFailure);
    }
  });
});
