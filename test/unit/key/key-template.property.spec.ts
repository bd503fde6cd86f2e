import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LockKeyError } from '../../../lib/core/lock.errors.js';
import { compileKey, lockKey } from '../../../lib/key/key-template.js';

const compile = (template: string, names: string[]) =>
  compileKey(template, {
    className: 'Orders',
    methodName: 'pay',
    parameters: names.map((name) => ({ name, rest: false })),
  });

/** Few and hostile characters, so that values and literals often look like one another. */
const confusing = (alphabet: string[], minLength: number) =>
  fc.string({ unit: fc.constantFrom(...alphabet), minLength, maxLength: 5 });

const literal = confusing(['a', 'b', ':', '%', '3A', '{', '}', '>', '\n'], 0)
  .filter((text) => !text.includes('>>') && !text.startsWith('>'))
  .map((text) => text.replace(/<|>$/g, ''));
const separator = fc.tuple(literal, literal).map(([before, after]) => `${before}:${after}`);
const value = fc.oneof(
  confusing(['a', 'b', ':', '%', '3A', '25', '{', '}', '<<x0>>', '\n', '\0', '__proto__', '😀'], 1),
  fc.string({ unit: 'binary', minLength: 1 }),
  fc.integer({ min: -3, max: 3 }),
  fc.boolean(),
);

/** A valid template with `count` placeholders, and its literals. */
const templates = (count: number) =>
  fc
    .tuple(literal, fc.array(separator, { minLength: count - 1, maxLength: count - 1 }), literal)
    .map(([head, separators, tail]) => {
      const literals = [head, ...separators, tail];
      const text = literals.map((l, i) => (i < count ? `${l}<<x${i}>>` : l)).join('');
      return { text, literals, names: Array.from({ length: count }, (_, i) => `x${i}`) };
    });

/** Reads the values back out of a key as the proof in template-syntax.ts says; knows only the literals. */
function unrender(key: string, literals: readonly string[]): string[] {
  const values: string[] = [];
  let start = (literals[0] ?? '').length;
  for (let i = 1; i < literals.length; i++) {
    const next = literals[i] ?? '';
    const isLast = i === literals.length - 1;
    const end = isLast ? key.length - next.length : key.indexOf(':', start) - next.indexOf(':');
    values.push(decodeURIComponent(key.slice(start, end)));
    start = end + next.length;
  }
  return values;
}

describe('argument lists whose rendered values differ never share a key', () => {
  const cases = fc.integer({ min: 1, max: 4 }).chain((count) => {
    const values = fc.array(value, { minLength: count, maxLength: count });
    return fc.record({ template: templates(count), one: values, other: values });
  });

  it('for any template: two lists give one key exactly when they render alike', () => {
    fc.assert(
      fc.property(cases, ({ template, one, other }) => {
        const key = compile(template.text, template.names);
        const same = one.map(String).join('\0\0') === other.map(String).join('\0\0');
        expect(key.render(one)[0] === key.render(other)[0]).toBe(same);
      }),
      { numRuns: 5_000 },
    );
  });

  it('because the key gives every value back', () => {
    fc.assert(
      fc.property(cases, ({ template, one }) => {
        const [key = ''] = compile(template.text, template.names).render(one);
        expect(unrender(key, template.literals)).toEqual(one.map(String));
      }),
      { numRuns: 5_000 },
    );
  });

  it('also with literal text that runs into the values', () => {
    const hostile = confusing(['a', 'b', ':', '%', '}', '{'], 1);
    for (const text of ['a<<x0>>:b<<x1>>', '<<x0>>b:<<x1>>', '<<x0>>%3A:a<<x1>>a', '{<<x0>>}:{<<x1>>}']) {
      const key = compile(text, ['x0', 'x1']);
      const seen = new Map<string, string>();
      fc.assert(
        fc.property(hostile, hostile, (a, b) => {
          const [rendered = ''] = key.render([a, b]);
          const origin = JSON.stringify([a, b]);
          expect(seen.get(rendered) ?? origin).toBe(origin);
          seen.set(rendered, origin);
        }),
        { numRuns: 2_000 },
      );
    }
  });
});

describe('nothing but LockKeyError is ever thrown', () => {
  const orLockKeyError = (run: () => unknown): void => {
    try {
      run();
    } catch (error) {
      expect(error).toBeInstanceOf(LockKeyError);
    }
  };
  const pieces = [
    '<<',
    '>>',
    '<',
    '>',
    '.',
    '$',
    ':',
    'x0',
    '0',
    '-',
    ' ',
    '{',
    '\n',
    '\ud800',
    '__proto__',
    'é',
  ];

  it('by compiling any text', () => {
    const text = fc.oneof(fc.string({ unit: fc.constantFrom(...pieces), maxLength: 12 }), fc.string());
    fc.assert(
      fc.property(text, (template) => {
        orLockKeyError(() => compile(template, ['x0']).render(['v'], () => 'c'));
        orLockKeyError(() => lockKey(template, { x0: 'v' }));
      }),
      { numRuns: 5_000 },
    );
  });

  it('by rendering any argument, on any path', () => {
    const name = fc.constantFrom('a', '__proto__', 'constructor', 'toString', 'length', '0', 'size', 'then');
    const path = fc.array(name, { maxLength: 3 });
    const argument = fc.anything({
      key: fc.oneof(name, fc.string()),
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withObjectString: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
    });
    fc.assert(
      fc.property(path, argument, (names, x0) => {
        const template = `k:<<${['x0', ...names].join('.')}>>`;
        orLockKeyError(() =>
          expect(compile(template, ['x0']).render([x0])[0]).toMatch(/^k:[^:{}\p{Cc}]+$/su),
        );
        orLockKeyError(() => lockKey(template, { x0 }));
      }),
      { numRuns: 5_000 },
    );
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
