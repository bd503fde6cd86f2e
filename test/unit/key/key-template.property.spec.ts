import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LockKeyError } from '../../../lib/core/errors/lock.errors.js';
import { compileKey, lockKey } from '../../../lib/key/key-template.js';

const compile = (template: string | readonly string[], names: string[]) =>
  compileKey(template, {
    className: 'Orders',
    methodName: 'pay',
    parameters: names.map((name) => ({ name, rest: false })),
  });

/** Few and hostile characters, so that values and literals often look like one another. */
const confusing = (alphabet: string[], minLength: number, maxLength = 5) =>
  fc.string({ unit: fc.constantFrom(...alphabet), minLength, maxLength });

const literal = confusing(['a', 'b', ':', '%', '3A', '{', '}', '>', '\n'], 0)
  .filter((text) => !text.includes('>>') && !text.startsWith('>'))
  .map((text) => text.replace(/<|>$/g, ''));
/** Some have no ':', and a template with such a one has to be refused. */
const separator = fc
  .tuple(literal, fc.constantFrom(':', ':', ':', ''), literal)
  .map((parts) => parts.join(''));

const HOSTILE = ['a', 'b', ':', '%', '3A', '25', '{', '}', '<<', '>>', '\n', '\0', '\x9f', '__proto__', '😀'];
const text = fc.oneof(
  { weight: 6, arbitrary: confusing(HOSTILE, 1) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', minLength: 1 }) },
  // So long that what differs is far from where one looks.
  { weight: 1, arbitrary: confusing(HOSTILE, 1, 2).map((end) => ':'.repeat(10_000) + end) },
);
const value = fc.oneof(
  { weight: 4, arbitrary: text },
  { weight: 1, arbitrary: fc.integer({ min: -3, max: 3 }) },
  { weight: 1, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }) },
  { weight: 1, arbitrary: fc.bigInt({ min: -3n, max: 3n }) },
  { weight: 1, arbitrary: fc.boolean() },
);

/** Ways in which a value can get into a key: what stands in the placeholder, and what is passed for a value. */
const ROOTS: readonly [(i: number) => string, (value: unknown) => unknown][] = [
  [(i) => `x${i}`, (value) => value],
  [(i) => `${i}`, (value) => value],
  [(i) => `x${i}.a.b`, (value) => ({ a: { b: value } })],
  [(i) => `${i}.0`, (value) => [value]],
  [(i) => `x${i}.__proto__`, (value) => Object.defineProperty({}, '__proto__', { value })],
  [(i) => `x${i}.given`, (value) => new (class { get given() { return value; } })()], // prettier-ignore
];

/** A valid template with `count` placeholders, its literals, and the arguments for a list of values. */
const templates = (count: number) =>
  fc
    .tuple(
      literal,
      fc.array(separator, { minLength: count - 1, maxLength: count - 1 }),
      literal,
      fc.array(fc.constantFrom(...ROOTS), { minLength: count, maxLength: count }),
    )
    .map(([head, separators, tail, roots]) => {
      const literals = [head, ...separators, tail];
      const slots = roots.map(([nameOf], i) => `<<${nameOf(i)}>>`);
      return {
        text: literals.map((l, i) => l + (slots[i] ?? '')).join(''),
        literals,
        isGood: separators.every((between) => between.includes(':')),
        names: slots.map((_, i) => `x${i}`),
        argumentsFor: (values: readonly unknown[]) => values.map((one, i) => roots[i]![1](one)),
      };
    });

/** Another list that reads the same, with ':' or nothing between the values, but is cut in other places. */
const cutElsewhere = (values: readonly unknown[]): fc.Arbitrary<string[]> =>
  fc.constantFrom(':', '').chain((joint) => {
    const whole = values.map(String).join(joint);
    const places = [...whole.matchAll(new RegExp(joint, 'g'))].map(({ index }) => index);
    const cut = fc.constantFrom(...(places.length > 0 ? places : [0]));
    return fc.array(cut, { minLength: values.length - 1, maxLength: values.length - 1 }).map((cuts) => {
      const starts = [0, ...cuts.sort((a, b) => a - b).map((at) => at + joint.length)];
      return starts.map((start, i) => {
        const end = starts[i + 1] === undefined ? whole.length : starts[i + 1]! - joint.length;
        return whole.slice(start, end) || 'a';
      });
    });
  });

const cases = fc.integer({ min: 1, max: 4 }).chain((count) => {
  const values = fc.array(value, { minLength: count, maxLength: count });
  return values.chain((one) =>
    fc.record({
      template: templates(count),
      one: fc.constant(one),
      other: fc.oneof(values, cutElsewhere(one)),
    }),
  );
});

const textOf = (values: readonly unknown[]): string => JSON.stringify(values.map(String));

/** What it gives, or undefined where the library says that there is no key. */
const unlessRefused = <T>(give: () => T): T | undefined => {
  try {
    return give();
  } catch (error) {
    expect(error).toBeInstanceOf(LockKeyError);
    return undefined;
  }
};

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
  it('for any template: two lists give one key exactly when they render alike', () => {
    const compared = { alike: 0, different: 0 };
    fc.assert(
      fc.property(cases, ({ template, one, other }) => {
        const key = unlessRefused(() => compile(template.text, template.names));
        expect(key !== undefined).toBe(template.isGood);
        const keyOf = (values: readonly unknown[]) =>
          unlessRefused(() => key?.render(template.argumentsFor(values))[0]);
        const [first, second] = [keyOf(one), keyOf(other)];
        // More bytes than a key may have, or half a surrogate pair.
        if (first === undefined || second === undefined) return;
        const areAlike = textOf(one) === textOf(other);
        expect(first === second).toBe(areAlike);
        compared[areAlike ? 'alike' : 'different'] += 1;
      }),
      { numRuns: 3_000 },
    );
    expect(Math.min(compared.alike, compared.different)).toBeGreaterThan(50);
  });

  it('because the key gives every value back', () => {
    let readBack = 0;
    fc.assert(
      fc.property(cases, ({ template, one }) => {
        const key = unlessRefused(
          () => compile(template.text, template.names).render(template.argumentsFor(one))[0],
        );
        if (key === undefined) return;
        expect(unrender(key, template.literals)).toEqual(one.map(String));
        readBack += 1;
      }),
      { numRuns: 3_000 },
    );
    expect(readBack).toBeGreaterThan(500);
  });

  it('with defaults: two lists give one key exactly when the values or their defaults render alike', () => {
    const signs = ['a', 'b', '%', '3A', '{', '}', '<', '>', '.', ' ', '\n'];
    const defaultText = confusing(signs, 1, 3).filter((given) => !/<<|>>|^>|>$|<$/.test(given));
    const absent = fc.constantFrom(undefined, null, '');
    const given = (defaults: readonly string[]) =>
      fc.tuple(...defaults.map((one) => fc.oneof(absent, fc.constant(one), confusing(signs, 1, 3))));
    const compared = { alike: 0, different: 0 };
    const lists = fc
      .array(defaultText, { minLength: 1, maxLength: 3 })
      .chain((defaults) => fc.tuple(fc.constant(defaults), given(defaults), given(defaults)));
    fc.assert(
      fc.property(lists, ([defaults, one, other]) => {
        const names = defaults.map((_, i) => `x${i}`);
        const template = defaults.map((text, i) => `<<x${i}.v|${text}>>`).join(':');
        const keyOf = (values: readonly unknown[]) =>
          compile(template, names).render(values.map((v) => (v === null ? v : { v })))[0];
        const areAlike = defaults.every((text, i) => (one[i] || text) === (other[i] || text));
        expect(keyOf(one) === keyOf(other)).toBe(areAlike);
        compared[areAlike ? 'alike' : 'different'] += 1;
      }),
      { numRuns: 3_000 },
    );
    expect(Math.min(compared.alike, compared.different)).toBeGreaterThan(50);
  });

  it('because half a surrogate pair, for which UTF-8 has no form, is in no key', () => {
    const half = fc.integer({ min: 0xd800, max: 0xdfff }).map((code) => String.fromCharCode(code));
    fc.assert(
      fc.property(half, fc.constantFrom('', 'a', '\ud83d\ude00'), (broken, rest) => {
        for (const value of [broken + rest, `${rest}${broken}`]) {
          expect(() => compile('k:<<x0>>', ['x0']).render([value])).toThrow(LockKeyError);
          expect(() => lockKey(`k:${value}:<<a>>`, { a: 1 })).toThrow(LockKeyError);
        }
      }),
    );
  });

  it('also with literal text that runs into the values', () => {
    const hostile = confusing(['a', 'b', ':', '%', '}', '{'], 1);
    for (const template of ['a<<x0>>:b<<x1>>', '<<x0>>b:<<x1>>', '<<x0>>%3A:a<<x1>>a', '{<<x0>>}:{<<x1>>}']) {
      const key = compile(template, ['x0', 'x1']);
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
