import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import type { Section, Subject } from './subject.js';

const LEASE_MS = 30_000;

const RELEASE = `
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
`;

/**
 * The lower bound: one ioredis connection that sends SET with NX and PX, and a script that compares and deletes. Nothing
 * else: no token, no queue, no time-out, no renewal, no options. An AsyncLocalStorage is in use, as in every Nest app that
 * keeps a context.
 */
export const floor: Subject = {
  name: 'floor',
  insideScripts: ['get', 'del'],
  async open({ url }) {
    const client = new Redis(url, {
      lazyConnect: true,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      enableAutoPipelining: false,
      protocol: 2,
    });
    await client.connect();
    const release = (await client.script('LOAD', RELEASE)) as string;
    const context = new AsyncLocalStorage<string>();
    const id = randomUUID();
    let count = 0;
    const withLock = async (key: string, section: Section): Promise<void> => {
      const name = `lock:${key}`;
      const owner = `${id}:${++count}`;
      const reply = await client.set(name, owner, 'PX', LEASE_MS, 'NX');
      if (reply !== 'OK') throw new Error(`"${key}" is taken, and the floor does not wait`);
      try {
        await context.run(owner, section);
      } finally {
        await client.evalsha(release, 1, name, owner);
      }
    };
    return {
      styles: { withLock },
      close: () => Promise.resolve(client.disconnect()),
    };
  },
};
