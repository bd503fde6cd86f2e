import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { until } from '../support/async.js';
import { casesBeside, LOAD_MS, roundsFor, VERSIONS } from './extent.js';
import type { Redisson } from '../support/redisson/redisson.js';
import { Sides } from './sides.js';

const WATCHDOG_MS = 3_000;

let names = 0;
const NAMES = ['order', '{order}:42', 'bestellung-ü-🔒'];
const newName = (): string => `${NAMES[names % NAMES.length]!}-${(names += 1)}`;
const counterOf = (name: string): string => `redisson_lock_token:${name.includes('{') ? name : `{${name}}`}`;

describe.each(VERSIONS)(
  "an RFencedLock of Redisson %s and an exclusive lock with fencing: 'redisson'",
  (version) => {
    const also = casesBeside(version);
    let sides: Sides;
    let java: Redisson;
    let admin: Redis;
    const opened: OpenLocks[] = [];

    const open = (): OpenLocks['locks'] => {
      const options = {
        keyPrefix: '',
        waitMs: 30_000,
        watchdogMs: WATCHDOG_MS,
        fencing: 'redisson',
      } as const;
      const one = sides.open(options);
      opened.push(one);
      return one.locks;
    };

    beforeAll(async () => {
      sides = await Sides.start();
      java = await sides.java({ version, watchdogMs: WATCHDOG_MS });
      admin = sides.admin();
    });
    afterAll(async () => {
      for (const one of opened) await one.close();
      admin.disconnect();
      await sides[Symbol.asyncDispose]();
    });

    const javaTakes = async (name: string): Promise<number> => {
      const token = await java.send('lockToken', { name, kind: 'fenced' });
      await java.send('unlock', { name, kind: 'fenced' });
      return token;
    };

    also.each(NAMES)(
      'count tokens in one series, one after the other, from either side: %s',
      async (name) => {
        const locks = open();
        const nodeTakes = () => locks.withLock(name, ({ fencingToken }) => fencingToken);
        const tokens: number[] = [];
        for (let i = 0; i < 3; i += 1) tokens.push(await javaTakes(name), await nodeTakes());
        expect(tokens).toEqual([1, 2, 3, 4, 5, 6]);
        // An end of a hold by force, and one by itself, on either side.
        await java.send('lockToken', { name, kind: 'fenced', thread: 'forced' });
        expect(await locks.forceUnlock(name)).toBe(true);
        await locks.acquire(name);
        expect(await java.send('forceUnlock', { name, kind: 'fenced' })).toBe(true);
        await java.send('lock', { name, kind: 'fenced', leaseMs: 30 });
        await (await locks.acquire(name, { leaseMs: 30 })).release();
        expect([await nodeTakes(), await javaTakes(name)]).toEqual([11, 12]);
        expect(await admin.pttl(counterOf(name))).toBe(-1);
      },
    );

    it(
      'count tokens in one growing series under load',
      async () => {
        const name = newName();
        const series = `series-of-${name}`;
        const [threads, callers] = [6, 6];
        const services = [open(), open()];
        const rounds = roundsFor(threads + services.length * callers);
        const contended = async (locks: OpenLocks['locks']) => {
          for (let round = 0; round < rounds; round += 1) {
            await locks.withLock(name, ({ fencingToken }) => admin.rpush(series, fencingToken));
          }
        };
        await Promise.all([
          java.send('tokens', { name, kind: 'fenced', series, threads, rounds }),
          ...services.flatMap((locks) => Array.from({ length: callers }, () => contended(locks))),
        ]);
        const tokens = (await admin.lrange(series, 0, -1)).map(Number);
        expect(tokens).toHaveLength((threads + services.length * callers) * rounds);
        expect(tokens.filter((token, i) => i > 0 && token <= tokens[i - 1]!)).toEqual([]);
        expect(Number(await admin.get(counterOf(name)))).toBeGreaterThanOrEqual(tokens.at(-1)!);
        expect(await admin.pttl(counterOf(name))).toBe(-1);
      },
      2 * LOAD_MS,
    );

    also('wake each other, and each has a token greater than the one before', async () => {
      const [name, locks] = [newName(), open()];
      const listening = (count: number): Promise<unknown> =>
        until(async () => {
          const channel = `redisson_lock__channel:${name.includes('{') ? name : `{${name}}`}`;
          return (await sides.listeners(channel)) >= count;
        });
      const first = await java.send('lockToken', { name, kind: 'fenced' });
      const acquired = locks.acquire(name);
      await listening(1);
      const before = performance.now();
      await java.send('unlock', { name, kind: 'fenced' });
      const lease = await acquired;
      const locked = java.send('lockToken', { name, kind: 'fenced' });
      await listening(2);
      await lease.release();
      const last = await locked;
      expect(performance.now() - before).toBeLessThan(WATCHDOG_MS / 2);
      await java.send('unlock', { name, kind: 'fenced' });
      expect([first, lease.fencingToken, last].toSorted((a, b) => a - b)).toEqual([
        first,
        lease.fencingToken,
        last,
      ]);
    });

    it('leave nothing in the log of Redisson that comes from us', () => {
      expect(java.log).not.toMatch(/ (WARN|ERROR) /);
    });
  },
);
