import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LockKeyError } from '../../../lib/core/errors/lock.errors.js';
import { hashSlot } from '../../../lib/stores/redis/hash-slot.js';
import { RedisKeys } from '../../../lib/stores/redis/redis-keys.js';

const keys = new RedisKeys('');

describe('names in Redis', () => {
  it('the hold has the final key as its name, after the prefix of the client', () => {
    expect(keys.name('lock:order:42')).toBe('lock:order:42');
    expect(new RedisKeys('app:').name('lock:order:42')).toBe('app:lock:order:42');
  });

  it("the channel is Redisson's: braces around a name that has none, and none around one that has", () => {
    expect(keys.lockChannel('lock:order')).toBe('redisson_lock__channel:{lock:order}');
    expect(keys.lockChannel('lock:{order}:42')).toBe('redisson_lock__channel:lock:{order}:42');
    expect(keys.lockChannel(new RedisKeys('app:').name('k'))).toBe('redisson_lock__channel:{app:k}');
  });

  it('the token key depends on the slot of the hold alone: not on prefixes, not on what else is in the name', () => {
    const direct = keys.fence(keys.name('app:lock:k'));
    const prefixed = new RedisKeys('app:').fence(new RedisKeys('app:').name('lock:k'));
    expect(prefixed).toBe(direct);
    expect(keys.fence('x{k}y')).toBe(keys.fence('{k}'));
  });

  it('hold, channel and token key of any key that is not refused share one slot', () => {
    const refused = (name: string): boolean => {
      try {
        keys.check(name);
        return false;
      } catch {
        return true;
      }
    };
    const text = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1 }),
      fc
        .array(fc.constantFrom('{', '}', 'a', ':', 'ö', '😀'), { minLength: 1 })
        .map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(text, (name) => {
        fc.pre(!refused(name));
        const slot = hashSlot(name);
        expect(hashSlot(keys.fence(name))).toBe(slot);
        expect(hashSlot(keys.lockChannel(name))).toBe(slot);
        expect(hashSlot(keys.permitChannel(name))).toBe(slot);
        expect(hashSlot(keys.permitSet(name))).toBe(slot);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('a name that is one pair of braces, beside the name inside', () => {
  const [inside, pair] = ['job', '{job}'];

  it.each(['queue', 'readWriteQueue', 'readerIndex'] as const)('has its own %s, in its slot', (what) => {
    const names = [inside, pair, `nest_redis_lock:${pair}`].map((name) => keys[what](name));
    expect(names[0]).not.toBe(names[1]);
    expect(new Set(names.map(hashSlot))).toEqual(new Set([hashSlot(inside)]));
  });

  it.each(['exclusive', 'read'] as const)('is found by the name of its wait queue for %s locks', (kind) => {
    for (const name of [inside, pair, 'a{job}']) {
      const queue = kind === 'exclusive' ? keys.queue(name) : keys.readWriteQueue(name);
      expect(keys.queuedAt(queue)).toEqual({ finalKey: name, kind });
    }
  });
});

describe('keys that could be taken but never released in a cluster', () => {
  it.each(['{', '}', 'a{b', 'a}b', '{}', 'a{}b', '}{', 'a}{b', '{}{b}'])(
    '%j is refused, with what to do',
    (key) => {
      expect(() => keys.check(key)).toThrow(LockKeyError);
      expect(() => keys.check(key)).toThrow(/one pair/);
    },
  );

  it.each(['plain', 'a{b}c', '{b}', 'a{b}{c}', 'a{b}c}', '}{c}', ''])('%j is fine', (key) => {
    expect(() => keys.check(key)).not.toThrow();
  });

  it('the prefix of the client counts', () => {
    expect(() => new RedisKeys('{app').check('k')).toThrow(LockKeyError);
    expect(() => new RedisKeys('{app').check('}k')).not.toThrow();
    expect(() => new RedisKeys('{app}:').check('k')).not.toThrow();
  });
});
