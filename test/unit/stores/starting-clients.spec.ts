import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import type { RedisLike } from '../../../lib/stores/redis/connection/redis-client.js';
import { StartingClients } from '../../../lib/stores/redis/connection/starting-clients.js';

it('a client that is connected already keeps the process alive only once its app has started', () => {
  let isRef = true;
  const stream = { ref: () => (isRef = true), unref: () => (isRef = false) };
  const client = Object.assign(new EventEmitter(), { stream, options: {} });
  const clients = new StartingClients();
  clients.add(client as unknown as RedisLike);
  let started = (): void => undefined;
  clients.begin({ isNeeded: false, whenOver: (listener) => (started = listener) });
  expect(isRef).toBe(false);
  started();
  expect(isRef).toBe(true);
});
