import fc from 'fast-check';
import { runs } from './runs.js';

/** One value of any type, with a name: many of these cannot even be printed. */
class Sample {
  constructor(
    readonly value: unknown,
    private readonly name: string,
  ) {}

  [fc.toStringMethod](): string {
    return this.name;
  }
}

const forbidden = (): never => {
  throw new Error('this must not be looked into');
};

/** A Proxy that throws at whatever is done to it. */
const untouchable = (target: object): object => new Proxy(target, new Proxy({}, { get: () => forbidden }));

const revoked = (target: object): object => {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
};

/** What a careless `String(value)`, a template, a JSON or a property access stumbles over. */
const HOSTILE: Readonly<Record<string, unknown>> = {
  'a symbol': Symbol('s'),
  'an object without a prototype': Object.create(null),
  'an object whose toString throws': { toString: forbidden },
  'an object whose toString gives no text': { toString: () => ({}) },
  'an object whose toPrimitive throws': { [Symbol.toPrimitive]: forbidden },
  'an object with a getter that throws': Object.defineProperty({}, 'then', {
    get: forbidden,
    enumerable: true,
  }),
  'an object that throws as JSON': { toJSON: forbidden },
  'an object in itself': ((self: Record<string, unknown>) => Object.assign(self, { self }))({}),
  'a revoked Proxy': revoked({}),
  'a revoked Proxy of an array': revoked([]),
  'a revoked Proxy of a function': revoked(forbidden),
  'a Proxy that throws': untouchable({}),
  'an array that throws': untouchable([]),
  'a function that throws': forbidden,
  'a function whose text throws': Object.assign(() => undefined, { toString: forbidden }),
  'an async function': async () => undefined,
  'a class': class Nobody {},
  'a promise': Promise.resolve(1),
  'a date': new Date(0),
  'an invalid date': new Date(Number.NaN),
  'a regular expression': /x/,
  'an error': new Error('an error'),
  'a map': new Map([['a', 1]]),
  'a URL': new URL('redis://127.0.0.1:1'),
  'a number in a box': Object(1_000),
  'a string in a box': Object('event'),
  'a boolean in a box': Object(true),
  '10,000 characters': 'x'.repeat(10_000),
  'half a surrogate pair': '\ud800',
  __proto__: '__proto__',
  'a template': '<<x>>:{y}%\n',
};

/** What one option takes, and what looks like it to another. */
const PLAUSIBLE: readonly unknown[] = [
  undefined,
  null,
  true,
  false,
  '',
  '0',
  '1000',
  '5s',
  'true',
  'event',
  'throw',
  'skip',
  'lock:',
  0,
  -0,
  1,
  1.5,
  -1,
  Number.NaN,
  Infinity,
  -Infinity,
  1_000n,
  [],
  [1_000],
  {},
];

const ALL_HOSTILE = Object.entries(HOSTILE).map(([name, value]) => new Sample(value, name));

const hostile = fc.constantFrom(...ALL_HOSTILE);

const generated = fc
  .oneof(
    fc.constantFrom(...PLAUSIBLE),
    fc.integer({ min: -2, max: 40_000 }),
    fc.maxSafeInteger(),
    fc.double(),
    fc.bigInt(),
    fc.string({ unit: 'binary' }),
    fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withObjectString: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
    }),
  )
  .map((value) => new Sample(value, fc.stringify(value)));

/** Any value of any type: plain ones, those near the limits of options, and those that fight back. */
const anyValue: fc.Arbitrary<Sample> = fc.oneof(
  { weight: 1, arbitrary: hostile },
  { weight: 3, arbitrary: generated },
);

const RUNS = 50;

/** Runs `check` with all hostile values, with those that are given, and with many more of any type. */
export const forAnyValue = (
  given: readonly unknown[],
  check: (value: unknown) => void | Promise<void>,
): Promise<void> => {
  const samples = [...given.map((value) => new Sample(value, fc.stringify(value))), ...ALL_HOSTILE];
  return fc.assert(
    fc.asyncProperty(anyValue, async ({ value }) => check(value)),
    { ...runs(samples.length + RUNS), examples: samples.map((sample): [Sample] => [sample]) },
  );
};
