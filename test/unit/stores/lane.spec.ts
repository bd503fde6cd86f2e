import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, it } from 'vitest';
import { systemRuntime } from '../../../lib/core/runtime.js';
import { Lane } from '../../../lib/stores/sql/lane.js';
import type { SqlSession } from '../../../lib/stores/sql/sql-session.js';

it('statements and connections of a lane are outside the context of the caller', async () => {
  const requests = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const session = {
    isOver: false,
    send: async () => void seen.push(['sent', requests.getStore()]),
    destroy: () => undefined,
  } as unknown as SqlSession;
  const lane = new Lane({
    ...{ name: 'a database', runtime: systemRuntime(), timeoutMs: 1_000 },
    connect: async () => {
      seen.push(['connected', requests.getStore()]);
      return session;
    },
  });
  await requests.run('a request', async () => {
    for (const n of [1, 2]) {
      await lane.run({ sql: { texts: [`SELECT ${n}`], values: [] }, read: () => undefined });
      expect(requests.getStore()).toBe('a request');
    }
  });
  await lane.close();
  expect(seen).toEqual([
    ['connected', undefined],
    ['sent', undefined],
    ['sent', undefined],
  ]);
});
