import { describe, expect, it } from 'vitest';
import { LockKeyError } from '../../../lib/core/errors/lock.errors.js';
import { compileKey, lockKey } from '../../../lib/key/key-template.js';
import { refusedWith } from '../../support/refusal.js';

const compile = (template: string, ...names: string[]) =>
  compileKey(template, {
    className: 'Reports',
    methodName: 'build',
    parameters: names.map((name) => ({ name, rest: false })),
  });

const refusal = refusedWith(LockKeyError);

describe('the default of a placeholder', () => {
  it.each([undefined, null, ''])('stands for %j', (absent) => {
    expect(compile('report:<<tenant|all>>', 'tenant').render([absent])).toEqual(['report:all']);
    expect(lockKey('report:<<tenant|all>>', { tenant: absent })).toBe('report:all');
  });

  it.each([[[]], [['x']]])('stands for a value that is not passed: %j', (args) => {
    expect(compile('<<0>>:<<1|none>>', 'a', 'b').render(['x', ...args.slice(1)])).toEqual(['x:none']);
    expect(lockKey('report:<<tenant|all>>', {})).toBe('report:all');
  });

  it.each([[undefined], [null], [{}], [{ tenant: null }], [{ tenant: {} }], [{ tenant: { id: '' } }]])(
    'stands for the end of a path into %j',
    (user) => {
      expect(compile('<<user.tenant.id|none>>:<<0.tenant.id|none>>', 'user').render([user])).toEqual([
        'none:none',
      ]);
      expect(compile('<<$login.user.tenant.id|none>>').render([], () => ({ user }))).toEqual(['none']);
    },
  );

  it.each([
    ['<<0.id>>', null, '<<0.id|none>>'],
    ['<<0.id>>', { id: '' }, '<<0.id|none>>'],
    ['<<0>>', undefined, '<<0|none>>'],
  ])('is shown in the error of %s without one, for %j', (template, value, withDefault) => {
    expect(() => compile(template, 'v').render([value])).toThrow(`${withDefault} has a default.`);
    expect(() => compile(template, 'v').render([Number.NaN])).not.toThrow('has a default');
  });

  it('stands for a name that the context does not have', () => {
    expect(compile('<<$tenant|none>>').render([], () => undefined)).toEqual(['none']);
  });

  it.each([0, false, 'x', 0n])('does not stand for %s', (value) => {
    expect(compile('<<v|none>>', 'v').render([value])).toEqual([String(value)]);
  });

  it.each([Number.NaN, {}, [], Symbol('s')])('does not hide what cannot be part of a key: %o', (value) => {
    expect(() => compile('<<v|none>>', 'v').render([value])).toThrow('<<v|none>> is ');
  });

  it('does not hide a path into a value that has no properties', () => {
    expect(() => compile('<<v.id|none>>', 'v').render(['text'])).toThrow('v in <<v.id|none>> is a string');
  });

  it('gives the key of the same text as a value', () => {
    for (const text of ['all', 'a b', '100%', '{x}', 'no-one', 'a.b', '<b', '$x', '日本']) {
      const key = compile(`<<v|${text}>>`, 'v');
      expect(key.render([undefined])).toEqual(key.render([text]));
      expect(lockKey(`<<v|${text}>>`, {})).toBe(lockKey('<<v>>', { v: text }));
    }
  });

  it('is not part of the path that an error shows as an example', () => {
    expect(() => compile('<<v|none>>', 'v').render([{ a: 1 }])).toThrow('such as <<v.id>>,');
  });

  it.each([
    ['<<v|>>', "<<v|>> with nothing after the '|'"],
    ['<<v|a|b>>', "<<v|a|b>> with '|' after the '|'"],
    ['<<v|a:b>>', "<<v|a:b>> with ':' after the '|'"],
    ['<<v|a<<b>>', "<<v|a<<b>> with '<<' after the '|'"],
    ['<<v|a>>b>>', "has a '>>' without a '<<'"],
    ['<<|a>>', 'which is no path'],
    ['<<v |a>>', 'which is no path'],
    ['<<w|a>>', 'which is no parameter of the method'],
    ['<<v|v>>', 'whose default is the name of a parameter'],
  ])('is refused when the class is loaded: %j', (template, what) => {
    expect(refusal(() => compile(template, 'v')).message).toContain(what);
  });
});
