// An APM subscribes to the channels of ioredis. It sees the commands of the store, and the async context that they run in.
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, it } from 'vitest';
import { newKey, useLab } from '../support/redis/lab.js';

const lab = useLab();

it('commands that contain a key are sent outside the context of the caller', async () => {
  const [one, two] = [lab.open(), lab.open()];
  const key = newKey();
  const requests = new AsyncLocalStorage<string>();
  const seen: { readonly command: string; readonly request: string | undefined }[] = [];
  const onCommand = (message: unknown): void => {
    const { command, args } = message as { command: string; args: readonly unknown[] };
    if (String(args).includes(key)) seen.push({ command, request: requests.getStore() });
  };
  subscribe('tracing:ioredis:command:start', onCommand);
  try {
    await requests.run('a request', async () => {
      const lease = await one.locks.acquire(key);
      const waiting = two.locks.withLock(key, () => requests.getStore());
      await two.locks.tryAcquire(key, { waitMs: 60 });
      await one.locks.inspect(key);
      await lease.release();
      expect(await waiting).toBe('a request');
    });
  } finally {
    unsubscribe('tracing:ioredis:command:start', onCommand);
  }
  expect(seen.length).toBeGreaterThan(3);
  expect(seen.filter(({ request }) => request !== undefined)).toEqual([]);
});
