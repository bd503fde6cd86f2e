import { runInNewContext } from 'node:vm';
import { describe as suite, expect, it } from 'vitest';
import { LockKeyError } from '../../../lib/core/errors/lock.errors.js';
import { checkKey, checkKeys, describe, MAX_KEY_BYTES } from '../../../lib/key/key-check.js';
import { refusedWith } from '../../support/refusal.js';

const refusal = refusedWith(LockKeyError);

suite('checkKey', () => {
  it.each(['a', 'order:1', '{tag}:x', 'any thing: %41 <<x>>\n', '😀', 'x'.repeat(MAX_KEY_BYTES)])(
    'accepts %.20j verbatim',
    (key) => {
      expect(() => checkKey(key)).not.toThrow();
    },
  );

  it.each<[unknown, string]>([
    ['', 'is empty'],
    [undefined, 'it is undefined'],
    [null, 'it is null'],
    [7, 'it is a number'],
    [Promise.resolve('x'), 'it is an object (Promise)'],
    [new String('x'), 'it is an object (String)'],
    [() => 'x', 'it is a function'],
    [Symbol('x'), 'it is a symbol'],
    ['a\ud800', 'surrogate'],
    ['x'.repeat(MAX_KEY_BYTES + 1), `is ${MAX_KEY_BYTES + 1} bytes long`],
    ['é'.repeat(MAX_KEY_BYTES / 2 + 1), `is ${MAX_KEY_BYTES + 2} bytes long`],
  ])('refuses %.20o and says what it found', (key, found) => {
    const { message, code } = refusal(() => checkKey(key, 'Orders.pay'));
    expect(message).toContain(found);
    expect(message).toMatch(/^Orders\.pay: the lock key /);
    expect(message.length).toBeLessThan(200);
    expect(code).toBe('LOCK_KEY_INVALID');
  });
});

suite('checkKeys', () => {
  it('takes one key or a list, in order, with duplicates', () => {
    expect(checkKeys('a')).toEqual(['a']);
    expect(checkKeys(['b', 'a', 'b'])).toEqual(['b', 'a', 'b']);
  });

  it('refuses an empty list, and a list with a hole or a wrong key', () => {
    expect(refusal(() => checkKeys([], 'Orders.pay')).message).toMatch(/^Orders\.pay: .*empty/);
    refusal(() => checkKeys(['a', '']));
    refusal(() => checkKeys(['a', 1]));
    refusal(() => checkKeys(new Array(2)));
    refusal(() => checkKeys(undefined));
    const dead = Proxy.revocable([], {});
    dead.revoke();
    refusal(() => checkKeys(dead.proxy));
  });

  it('takes a mode for each key of a list, and refuses what else such an entry may have', () => {
    const entries = ['b', { key: 'a', mode: 'read' }, { key: 'a', mode: 'write' }, { key: 'c' }];
    expect(checkKeys(entries)).toEqual(['b', { key: 'a', mode: 'read' }, { key: 'a', mode: 'write' }, 'c']);
    for (const wrong of [
      { key: 'a', mode: 'append' },
      { key: 'a', moode: 'read' },
      { key: '', mode: 'read' },
      { key: 7, mode: 'read' },
      { mode: 'read' },
      ['a'],
    ]) {
      expect(refusal(() => checkKeys(['b', wrong], 'Orders.pay')).message).toMatch(/^Orders\.pay: /);
    }
    expect(() => checkKeys([{ key: 'a', mode: 'Read' }])).toThrow(
      'the mode of a lock key must be "read" or "write", but is "Read".',
    );
    refusal(() => checkKeys({ key: 'a', mode: 'read' }));
    const angry = Object.defineProperty({ key: 'a' }, 'mode', {
      enumerable: true,
      get: () => {
        throw new Error('no');
      },
    });
    refusal(() => checkKeys([angry]));
  });
});

suite('describe', () => {
  it('names what a value is, and never shows a value that may be long or secret', () => {
    class Cart {}
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const cases: [unknown, string][] = [
      [new Cart(), 'an object (Cart)'],
      [{}, 'an object'],
      [Object.create(null), 'an object'],
      [new Date(), 'an object (Date)'],
      [[1], 'an array'],
      [runInNewContext('[1]'), 'an array'],
      [NaN, 'NaN'],
      [-Infinity, '-Infinity'],
      ['secret', 'a string'],
      [12n, 'a bigint'],
      [true, 'true'],
      [revoked.proxy, 'an object that cannot be looked into'],
      [JSON.parse('{"constructor":{"name":"Forged"}}'), 'an object'],
    ];
    for (const [value, words] of cases) expect(describe(value)).toBe(words);
  });
});
