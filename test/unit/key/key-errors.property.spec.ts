import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LockKeyError } from '../../../lib/core/errors/lock.errors.js';
import { checkKeys } from '../../../lib/key/key-check.js';
import { compileKey, lockKey } from '../../../lib/key/key-template.js';
import { parameterNames } from '../../../lib/key/parameter-names.js';
import { forAnyValue } from '../../support/property/any-value.js';

const compile = (template: string | readonly string[], names: string[]) =>
  compileKey(template, {
    className: 'Orders',
    methodName: 'pay',
    parameters: names.map((name) => ({ name, rest: false })),
  });

describe('nothing but LockKeyError is ever thrown', () => {
  const orLockKeyError = (run: () => unknown): void => {
    try {
      run();
    } catch (error) {
      expect(error).toBeInstanceOf(LockKeyError);
    }
  };
  const pieces = ['<<', '>>', '<', '>', '.', '$', ':', '|', 'x0', '0', '-', ' ', '{', '\n', '\ud800', '__proto__', 'é', 'x'.repeat(10_000)]; // prettier-ignore

  it('by compiling any text', () => {
    const template = fc.oneof(fc.string({ unit: fc.constantFrom(...pieces), maxLength: 12 }), fc.string());
    fc.assert(
      fc.property(template, (any) => {
        orLockKeyError(() => compile(any, ['x0']).render(['v'], () => 'c'));
        orLockKeyError(() => lockKey(any, { x0: 'v' }));
      }),
      { numRuns: 5_000 },
    );
  });

  it('by compiling whatever is no text, for whatever method', async () => {
    await forAnyValue([['a', 7], ['<<x0>>', 'b'], new Array(2)], (any) => {
      orLockKeyError(() => compile(any as string, ['x0']).render(['v']));
      orLockKeyError(() => compile([any as string], ['x0']).render(['v']));
      orLockKeyError(() => lockKey(any as string, {}));
      orLockKeyError(() => checkKeys(any));
      for (const name of ['m', Symbol('m')]) {
        const parameters = parameterNames(any, name, any);
        const site = { className: '', methodName: name, parameters };
        orLockKeyError(() => compileKey('<<x0>>:<<0>>', site).render(['v', 'w']));
      }
    });
  });

  it('by rendering any argument, on any path', async () => {
    const names = [
      'a',
      '__proto__',
      'constructor',
      'toString',
      'length',
      '0',
      'size',
      'then',
      'self',
      'host',
    ];
    const paths = ['', ...names.flatMap((name) => [`.${name}`, `.a.${name}`])];
    const defaults = paths.map((path) => `${path}|none`);
    const compiled = [...paths, ...defaults].map((path) => compile(`k:<<x0${path}>>`, ['x0']));
    const rest = compileKey('k:<<x0.0>>', {
      className: 'Orders',
      methodName: 'pay',
      parameters: [{ name: 'x0', rest: true }],
    });
    const fromContext = compile('k:<<$x>>', []);
    const isKey = (key: string | undefined) => expect(key).toMatch(/^k:[^:{}\p{Cc}\p{Surrogate}]+$/su);
    await forAnyValue([{ a: 'a' }, { a: { length: 1 } }], (x0) => {
      for (const argument of [x0, { a: x0 }, [x0]]) {
        for (const key of compiled) orLockKeyError(() => isKey(key.render([argument])[0]));
        for (const path of paths) orLockKeyError(() => isKey(lockKey(`k:<<x0${path}>>`, { x0: argument })));
      }
      orLockKeyError(() => isKey(rest.render([x0])[0]));
      orLockKeyError(() => isKey(fromContext.render([], () => x0)[0]));
      orLockKeyError(() => isKey(lockKey('k:<<x0>>', x0 as object)));
    });
  });

  it('by arguments that fight back', () => {
    const throwing = (): never => {
      throw Proxy.revocable({}, {}).proxy;
    };
    const dead = Proxy.revocable({}, {});
    dead.revoke();
    const everyTrap = new Proxy({}, new Proxy({}, { get: () => throwing }));
    const deadInside = Object.create(null, { a: { get: () => dead.proxy } }) as object;
    for (const argument of [dead.proxy, everyTrap, deadInside, { a: dead.proxy }, { a: everyTrap }]) {
      for (const template of ['<<x0>>', '<<x0.a>>', '<<x0.a.b>>', '<<x0.b>>']) {
        expect(() => compile(template, ['x0']).render([argument])).toThrow(LockKeyError);
        expect(() => lockKey(template, { x0: argument })).toThrow(LockKeyError);
      }
      expect(() => lockKey('<<x0>>', argument)).toThrow(LockKeyError);
      expect(() => compile('<<$x>>', []).render([], () => argument)).toThrow(LockKeyError);
    }
    expect(() => compile('<<$x>>', []).render([], throwing)).toThrow(LockKeyError);
  });
});
