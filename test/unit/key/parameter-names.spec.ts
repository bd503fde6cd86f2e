import { runInNewContext } from 'node:vm';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { formatParameters, parameterNames, type Parameter } from '../../../lib/key/parameter-names.js';

type Names = (string | undefined)[];
type Captured = Map<string, readonly Parameter[] | undefined>;

/** A decorator that reads the names when it runs, as `@Locked` does. */
function capturing(captured: Captured) {
  return (target: object, name: string | symbol, descriptor: PropertyDescriptor): void => {
    captured.set(String(name), parameterNames(target.constructor, name, descriptor.value));
  };
}

/** The names up to the first rest without a name, which only says that a method reads `arguments`. */
const names = (parameters: readonly Parameter[] | undefined): Names | undefined =>
  parameters?.filter(({ name, rest }) => name !== undefined || !rest).map(({ name }) => name);

/** One class with every shape of method, and the names each must give. */
const SHAPES = `
  const MARK = Symbol('mark');
  const computed = 'computed';
  class Base { base(a) { return a; } }
  class Shapes extends Base {
    #secret = 1;
    static plain(z, y) { return [z, y]; }
    @capture plain(a, b) { return [a, b]; }
    @capture async asynchronous(a, b) { return [a, b]; }
    @capture defaults(a = Math.max(1, 2), b = '),(', c = /[),(]/) { return [a, b, c]; }
    @capture async asyncDefaults(a, b = (x, y) => x + y, c = \`\${'),'}\`) { return [a, b, c]; }
    @capture comments(/* x, y) */ a, // z)
      b /* = 1 */) { return [a, b]; }
    @capture objectPattern({ x, y: [z] }, b) { return [x, z, b]; }
    @capture async arrayPattern([x] = [1], b) { return [x, b]; }
    @capture rest(a, ...ids) { return [a, ids]; }
    @capture async restPattern(a, ...[x]) { return [a, x]; }
    @capture *generator(a, b) { yield a; yield b; }
    @capture async *asyncGenerator(a, b = 1) { yield a; yield b; }
    @capture async privateField(a, b) { return this.#secret + a + b; }
    @capture async callsSuper(a, b) { return [super.base(a), b]; }
    @capture 'quoted name'(a, b) { return [a, b]; }
    @capture 42(a, b) { return [a, b]; }
    @capture [computed](a, b) { return [a, b]; }
    @capture async [MARK](a, b) { return [this.#secret, a, b]; }
    @capture get(a) { return a; }
    @capture async($a, ñ_1) { return [$a, ñ_1]; }
    @capture none() { return 1; }
    @capture usesArguments(a) { return [a, arguments[1]]; }
    get plainAccessor() { return 1; }
    set plainAccessor(value) { this.value = value; }
  }
`;

const EXPECTED: Record<string, Names> = {
  plain: ['a', 'b'],
  asynchronous: ['a', 'b'],
  defaults: ['a', 'b', 'c'],
  asyncDefaults: ['a', 'b', 'c'],
  comments: ['a', 'b'],
  objectPattern: [undefined, 'b'],
  arrayPattern: [undefined, 'b'],
  rest: ['a', 'ids'],
  restPattern: ['a'],
  generator: ['a', 'b'],
  asyncGenerator: ['a', 'b'],
  privateField: ['a', 'b'],
  callsSuper: ['a', 'b'],
  'quoted name': ['a', 'b'],
  '42': ['a', 'b'],
  computed: ['a', 'b'],
  'Symbol(mark)': ['a', 'b'],
  get: ['a'],
  async: ['$a', 'ñ_1'],
  none: [],
  usesArguments: ['a'],
};

function runTranspiled(source: string, target: ts.ScriptTarget, prelude: object = {}): Captured {
  const captured: Captured = new Map();
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: {
      target,
      module: ts.ModuleKind.None,
      experimentalDecorators: true,
      ignoreDeprecations: '6.0',
    },
  });
  runInNewContext(outputText, { capture: capturing(captured), ...prelude });
  return captured;
}

describe('parameterNames', () => {
  it.each(['ES2015', 'ES2016', 'ES2017', 'ES2018', 'ES2021', 'ES2022', 'ESNext'] as const)(
    'reads every shape of method in the output of tsc for %s',
    (target) => {
      const captured = runTranspiled(SHAPES, ts.ScriptTarget[target]);
      const found = Object.fromEntries([...captured].map(([name, parameters]) => [name, names(parameters)]));
      // Lowered for ES2015 and ES2016, the pattern of a rest parameter becomes a name of the compiler.
      expect({ ...found, restPattern: found.restPattern?.slice(0, 1) }).toEqual(EXPECTED);
    },
  );

  it('reads what ES5 keeps: plain parameters, and parameters of lowered async methods', () => {
    const source = `
      class A {
        @capture plain(a, b) { return [a, b]; }
        @capture defaults(a = 1, b) { return [a, b]; }
        @capture async asynchronous(a, b = 1) { return [a, b]; }
        @capture rest(a, ...ids) { return [a, ids]; }
      }`;
    const captured = runTranspiled(source, ts.ScriptTarget.ES5);
    expect(
      Object.fromEntries([...captured].map(([name, parameters]) => [name, formatParameters(parameters)])),
    ).toEqual({ plain: '(a, b)', defaults: '(a, b)', asynchronous: '(a, b)', rest: '(a, ...)' });
  });

  it('reads classes as the transformer of this test run emits them', () => {
    const captured: Captured = new Map();
    const capture = capturing(captured);
    const MARK = Symbol('mark');
    class Service {
      readonly #prefix = 'p';
      constructor(readonly injected: string) {}

      @capture
      async pay(userId: string, { amount }: { amount: number }, retries = Math.max(1, 2), ...tags: string[]) {
        return [this.#prefix, userId, amount, retries, tags];
      }

      @capture
      protected async *[MARK](first: number, second?: number): AsyncGenerator<unknown> {
        yield [first, second];
      }
    }
    expect(new Service('x').injected).toBe('x');
    expect(formatParameters(captured.get('pay'))).toBe('(userId, {…}, retries, ...tags)');
    expect(formatParameters(captured.get('Symbol(mark)'))).toBe('(first, second)');
  });

  it.each([
    [
      'esbuild',
      `var _secret; const _A = class _A { constructor() { __privateAdd(this, _secret, 1); __publicField(this, "x", 2); }
        async pay(userId, dto = { n: 1 }) { return __privateGet(this, _secret); } };
        _secret = new WeakMap(); let A = _A; A;`,
    ],
    [
      'esbuild for ES2015',
      `class A { pay(_0) { return __async(this, arguments, function* (userId, dto = {}) { return userId; }); } } A;`,
    ],
    [
      'SWC and Babel for ES2015',
      `class A { pay(_0) { var _this = this; return _wrap(function* (userId, dto = {}) { return userId; }).apply(this, arguments); } } A;`,
    ],
    ['oxc and swc', `let A = class A { async pay(userId, dto = (() => { return { a: [1, 2] } })()) {} }; A;`],
    [
      'istanbul',
      `class A { async pay(userId, dto = (cov_1.b[0][0]++, {})) { cov_1.f[0]++; cov_1.s[0]++; return userId; } } A;`,
    ],
  ])('reads the output of %s', (_tool, source) => {
    const owner = runInNewContext(source) as { prototype: { pay: unknown } };
    expect(names(parameterNames(owner, 'pay', owner.prototype.pay))).toEqual(['userId', 'dto']);
  });

  describe('below another decorator', () => {
    class Service {
      static toString(): string {
        return 'class Forged { pay(forged) {} }';
      }
      pay(userId: string, cart: object): unknown[] {
        return [userId, cart];
      }
    }
    const original = Object.getOwnPropertyDescriptor(Service.prototype, 'pay')?.value as (
      ...args: unknown[]
    ) => unknown;

    it.each<[string, unknown]>([
      ['a wrapper function', (...args: unknown[]) => original(...args)],
      ['a Proxy', new Proxy(original, {})],
      ['a bound function', original.bind(null)],
      ['nothing', undefined],
    ])('still reads the names through %s, and not from a static toString', (_what, method) => {
      expect(names(parameterNames(Service, 'pay', method))).toEqual(['userId', 'cart']);
    });

    it('takes the function itself when the class text does not have the method', () => {
      const added = function (first: string, second: string) {
        return [first, second];
      };
      expect(names(parameterNames(Service, 'added', added))).toEqual(['first', 'second']);
      expect(names(parameterNames(Service, 'arrow', async (only: string) => only))).toEqual(['only']);
      expect(names(parameterNames(class extends Service {}, 'pay', original))).toEqual(['userId', 'cart']);
    });
  });

  it('answers undefined when nothing can be read, instead of guessing', () => {
    class Service {}
    expect(parameterNames(Service, 'native', Math.max)).toBeUndefined();
    const babelForES5: unknown = runInNewContext(
      '(function pay(_x) { return _pay.apply(this, arguments); })',
    );
    expect(parameterNames(Service, 'pay', babelForES5)).toBeUndefined();
    expect(parameterNames(Service, 'bound', ((a: string) => a).bind(null))).toBeUndefined();
    expect(parameterNames(Service, 'proxy', new Proxy((a: string) => a, {}))).toBeUndefined();
    expect(parameterNames(new Proxy(Service, {}), 'missing', undefined)).toBeUndefined();
    expect(parameterNames(undefined, 'missing', undefined)).toBeUndefined();
    expect(parameterNames(Service, 'toString', undefined)).toBeUndefined();
    expect(parameterNames(Service, 'constructor', undefined)).toBeUndefined();
  });

  it('takes the last of two methods with one name, as JavaScript does', () => {
    const owner: unknown = runInNewContext('(class { pay(a) {} pay(b) {} static pay(c) {} get pay2() {} })');
    expect(names(parameterNames(owner, 'pay', undefined))).toEqual(['b']);
    expect(parameterNames(owner, 'pay2', undefined)).toBeUndefined();
  });

  it('reads sloppy functions, in which words reserved in modules are names', () => {
    const method: unknown = runInNewContext('(function (await, yield) { return [await, yield]; })');
    expect(names(parameterNames(Object, 'm', method))).toEqual(['await', 'yield']);
  });

  it('reads the text of a class once', () => {
    class Service {
      pay(userId: string): string {
        return userId;
      }
    }
    expect(parameterNames(Service, 'pay', undefined)).toBe(parameterNames(Service, 'pay', undefined));
  });

  it('shows that a minified bundle has other names, so that a written name fails or, being short, could mislead', () => {
    const owner: unknown = runInNewContext('(class{async pay(n,r,s){return[n,r,s]}})'); // from (userId, n, o)
    expect(names(parameterNames(owner, 'pay', undefined))).toEqual(['n', 'r', 's']);
  });
});
