import { createHash, randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { RedisKeys } from '../../../lib/stores/redis/redis-keys.js';
import { EXCLUSIVE_ACQUIRE, EXCLUSIVE_RELEASE } from '../../../lib/stores/redis/kinds/exclusive/scripts.js';
import { INSIDE_SCRIPTS } from './inside-scripts.js';
import type { Section, Subject } from './subject.js';

const LEASE_MS = 30_000;

interface Names {
  readonly hold: string;
  readonly fence: string;
  readonly channel: string;
}

const sha1 = (text: string): string => createHash('sha1').update(text).digest('hex');

/**
 * The lower bound: one ioredis connection that sends two scripts by their hash and nothing else. The scripts are the
 * ones without a wait queue. No time-outs, no renewal, no options; names are worked out once for each key.
 */
export const floor: Subject = {
  name: 'floor',
  insideScripts: INSIDE_SCRIPTS,
  async open({ url }) {
    const client = new Redis(url, {
      lazyConnect: true,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      enableAutoPipelining: false,
      protocol: 2,
    });
    await client.connect();
    await client.script('LOAD', EXCLUSIVE_ACQUIRE);
    await client.script('LOAD', EXCLUSIVE_RELEASE);
    const acquireHash = sha1(EXCLUSIVE_ACQUIRE);
    const releaseHash = sha1(EXCLUSIVE_RELEASE);

    const keys = new RedisKeys('');
    const known = new Map<string, Names>();
    const namesOf = (key: string): Names => {
      const existing = known.get(key);
      if (existing) return existing;
      const hold = keys.name(`lock:${key}`);
      const names = { hold, fence: keys.fence(hold), channel: keys.lockChannel(hold) };
      known.set(key, names);
      return names;
    };

    const id = randomUUID();
    let count = 0;
    const withLock = async (key: string, section: Section): Promise<void> => {
      const { hold, fence, channel } = namesOf(key);
      const owner = `${id}:${++count}`;
      const reply = await client.evalsha(acquireHash, 2, hold, fence, owner, LEASE_MS, 1);
      if (typeof reply !== 'string') throw new Error(`"${key}" is taken, and the floor does not wait`);
      try {
        await section();
      } finally {
        await client.evalsha(releaseHash, 1, hold, owner, channel, 'PUBLISH');
      }
    };
    return {
      styles: { withLock },
      close: () => Promise.resolve(client.disconnect()),
    };
  },
};
