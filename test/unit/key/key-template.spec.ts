import { describe, expect, it } from 'vitest';
import { LockKeyError } from '../../../lib/core/errors/lock.errors.js';
import { compileKey, lockKey, type ContextLookup } from '../../../lib/key/key-template.js';
import { MAX_KEY_BYTES } from '../../../lib/key/key-check.js';
import type { Parameter } from '../../../lib/key/parameter-names.js';
import { refusedWith } from '../../support/refusal.js';

const named = (...names: (string | undefined)[]): Parameter[] => names.map((name) => ({ name, rest: false }));

const compile = (template: string | readonly string[], parameters: readonly Parameter[] | undefined) =>
  compileKey(template, { className: 'Orders', methodName: 'pay', parameters });

const refusal = refusedWith(LockKeyError);

describe('compileKey renders', () => {
  const parameters = [...named('userId', 'cart', undefined), { name: 'ids', rest: true }];
  const args = ['u1', { owner: { id: 42n }, items: [{ sku: 's1' }, { sku: 's2' }] }, { x: true }, 'i0', 'i1'];

  it.each([
    ['report', 'report'],
    ['order:<<userId>>', 'order:u1'],
    ['<<userId>>', 'u1'],
    ['cart:<<cart.owner.id>>', 'cart:42'],
    ['cart:<<cart.owner.id>>:<<0>>', 'cart:42:u1'],
    ['sku:<<cart.items.1.sku>>', 'sku:s2'],
    ['i:<<1.owner.id>>', 'i:42'],
    ['i:<<2.x>>', 'i:true'],
    ['i:<<ids.1>>', 'i:i1'],
    ['i:<<4>>', 'i:i1'],
    ['order:{<<userId>>}:lines', 'order:{u1}:lines'],
    ['a<<userId>>b:c<<0>>d', 'au1b:cu1d'],
    ['100%:<<userId>> > {x}', '100%:u1 > {x}'],
  ])('%j as %j', (template, key) => {
    expect(compile(template, parameters).render(args)).toEqual([key]);
  });

  it('several templates in order, duplicates included', () => {
    const keys = compile(['account:<<from>>', 'account:<<to>>', 'all'], named('from', 'to'));
    expect(keys.render(['b', 'a'])).toEqual(['account:b', 'account:a', 'all']);
    expect(keys.render(['a', 'a'])).toEqual(['account:a', 'account:a', 'all']);
  });

  it('strings, finite numbers, bigints and booleans; the number 1 and the string 1 alike, -0 as 0', () => {
    const key = compile('k:<<v>>', named('v'));
    const rendered = ['x', 1, '1', -1.5, 1e21, 0, -0, 10n ** 20n, true, false].map((v) => key.render([v])[0]);
    expect(rendered).toEqual([
      ...['k:x', 'k:1', 'k:1', 'k:-1.5', 'k:1e+21', 'k:0', 'k:0'],
      ...['k:100000000000000000000', 'k:true', 'k:false'],
    ]);
  });

  it('hostile values escaped, so that they cannot leave their place', () => {
    const key = compile('o:<<a>>:<<b>>', named('a', 'b'));
    expect(key.render(['1:2', '3'])).toEqual(['o:1%3A2:3']);
    expect(key.render(['1', '2:3'])).toEqual(['o:1:2%3A3']);
    expect(key.render(['}{<<b>>%3A\r\n', '__proto__'])).toEqual(['o:%7D%7B<<b>>%253A%0D%0A:__proto__']);
    expect(key.render(['x'.repeat(10_000), ':'.repeat(10_000)])).toEqual([
      `o:${'x'.repeat(10_000)}:${'%3A'.repeat(10_000)}`,
    ]);
  });

  it('$names from the context, asked for without the $, once for each placeholder and call', () => {
    const asked: string[] = [];
    const context: ContextLookup = (name) => {
      asked.push(name);
      return { tenant: 't1', user: { headers: { 'x-id': 'h1' } } }[name];
    };
    const key = compile('<<$tenant>>:<<$user.headers.x-id>>:<<0>>', named('a'));
    expect(key.render(['v'], context)).toEqual(['t1:h1:v']);
    expect(asked).toEqual(['tenant', 'user']);
  });

  it('by index when the names cannot be read', () => {
    expect(compile('k:<<3>>', undefined).render([0, 1, 2, 3])).toEqual(['k:3']);
  });

  it('parameters that are called like members of Object.prototype', () => {
    const key = compile('k:<<constructor>>:<<__proto__>>', named('constructor', '__proto__'));
    expect(key.render(['a', 'b'])).toEqual(['k:a:b']);
  });

  it('symbol-named methods and anonymous classes', () => {
    const error = refusal(() =>
      compileKey('', { className: '', methodName: Symbol('pay'), parameters: named('a') }),
    );
    expect(error.message).toMatch(/^\(anonymous class\)\.Symbol\(pay\)\(a\): /);
  });
});

describe('compileKey refuses at load', () => {
  it.each([
    ['', 'is empty'],
    ['order:<<nam>>', '<<nam>>, which is no parameter of the method'],
    ['order:<<toString>>', '<<toString>>, which is no parameter'],
    ['order:<<__proto__>>', '<<__proto__>>, which is no parameter'],
    ['order:<<2>>', 'only 2 parameter(s)'],
    ['order:<<userId', "'<<' without a '>>'"],
    ['order:userId>>', "'>>' without a '<<'"],
    ['<<userId>>:x>>', "'>>' without a '<<'"],
    ['<<userId>>>>', "'>>' without a '<<'"],
    ['a<<b<<userId>>', 'no path'],
    ['<<<userId>>', 'no path'],
    ['<<>>', 'empty placeholder'],
    ['<< userId >>', 'no path'],
    ['<<$>>', 'no path'],
    ['<<01>>', 'no path'],
    ['<<-1>>', 'no path'],
    ['<<1a>>', 'no path'],
    ['<<9999999>>', 'no path'],
    ['<<userId.>>', 'no path'],
    ['<<.userId>>', 'no path'],
    ['<<userId..id>>', 'no path'],
    ['<<userId[0]>>', 'no path'],
    ['<<userId?.id>>', 'no path'],
    ['<<userId()>>', 'no path'],
    ['<<userId>><<dto.id>>', "no ':' between <<userId>> and <<dto.id>>"],
    ['<<userId>>-<<dto.id>>', "no ':' between <<userId>> and <<dto.id>>"],
    ['a:<<0>>:<<userId>>}{<<dto.id>>', "no ':' between <<userId>> and <<dto.id>>"],
    ['a:<<userId>>\udc00', 'surrogate'],
    ['x'.repeat(MAX_KEY_BYTES + 1), 'is the limit'],
  ])('%.40j, naming class, method, parameters and the fault', (template, fault) => {
    const { message } = refusal(() => compile(template, named('userId', 'dto')));
    expect(message).toMatch(/^Orders\.pay\(userId, dto\): /);
    expect(message).toContain(fault);
    expect(message.length).toBeLessThan(500);
  });

  it('an empty list, and a list with one bad template', () => {
    expect(refusal(() => compile([], named('a'))).message).toMatch(/^Orders\.pay\(a\): .*list.*empty/);
    refusal(() => compile(['a', 'b:<<nope>>'], named('a')));
  });

  it('a template that is no string', () => {
    for (const template of [undefined, null, 1, {}, [1], ['a', undefined], new Array(1)]) {
      refusal(() => compile(template as string, named('a')));
    }
  });

  it('a name when the parameters cannot be read, and says to use an index', () => {
    const { message } = refusal(() => compile('k:<<id>>', undefined));
    expect(message).toContain('Orders.pay(unknown parameters)');
    expect(message).toContain('<<0>>');
  });

  it('shows destructured and rest parameters', () => {
    const { message } = refusal(() =>
      compile('<<x>>', [...named('a', undefined), { name: 'r', rest: true }]),
    );
    expect(message).toContain('Orders.pay(a, {…}, ...r): ');
  });

  it('but not an index beyond the last parameter of a method with a rest', () => {
    expect(compile('<<5>>', [{ name: undefined, rest: true }]).render([0, 1, 2, 3, 4, 5])).toEqual(['5']);
  });
});

describe('compileKey refuses at call time', () => {
  it.each<[unknown, string]>([
    [undefined, 'undefined'],
    [null, 'null'],
    ['', 'an empty string'],
    [NaN, 'NaN'],
    [Infinity, 'Infinity'],
    [{}, 'an object'],
    [new Date(), 'an object (Date)'],
    [['a'], 'an array'],
    [new String('a'), 'an object (String)'],
    [() => 'a', 'a function'],
    [Symbol('a'), 'a symbol'],
    ['\ud800', 'surrogate'],
  ])('%o, naming class.method, placeholder and what was found', (value, found) => {
    const error = refusal(() => compile('order:<<id>>', named('id')).render([value]));
    expect(error.message).toMatch(/^Orders\.pay: no lock key from "order:<<id>>": <<id>> (is|has) /);
    expect(error.message).toContain(found);
    expect(error.key).toBe('order:<<id>>');
  });

  it.each<[string, unknown, string]>([
    ['<<dto>>', ['a', 'b'], 'name an element of it, such as <<dto.0>>, or use a key function with lockKey.'],
    ['<<dto.ids>>', { ids: [1] }, 'name an element of it, such as <<dto.ids.0>>, or use a key function with'],
    ['<<dto.ids>>', { ids: [] }, 'name an element of it, such as <<dto.ids.0>>, or use a key function with'],
    ['<<1>>', ['a'], 'name an element of it, such as <<1.0>>, or use a key function with lockKey.'],
    ['<<rest>>', 'a', 'name an element of it, such as <<rest.0>>, or use a key function with lockKey.'],
    ['<<dto.user>>', { user: { id: 1 } }, 'name a property of it, such as <<dto.user.id>>, or use a key'],
    [
      '<<dto.at>>',
      { at: new Date() },
      'a finite number, a bigint or a boolean: use a key function with lockKey.',
    ],
    ['<<dto.ids>>', { ids: new Set([1]) }, 'a bigint or a boolean: use a key function with lockKey.'],
  ])('%s with %o, suggesting what can work', (template, value, suggestion) => {
    const parameters = [...named('dto', 'other'), { name: 'rest', rest: true }];
    const { message } = refusal(() => compile(template, parameters).render([value, value, value]));
    expect(message).toContain(suggestion);
  });

  it('a missing argument', () => {
    expect(refusal(() => compile('order:<<id>>', named('id')).render([])).message).toContain(
      '<<id>> is undefined',
    );
  });

  it.each([
    ['<<cart.owner.id>>', {}, 'cart in <<cart.owner.id>> has no owner'],
    ['<<cart.owner.id>>', { owner: null }, 'cart.owner in <<cart.owner.id>> is null'],
    ['<<cart.owner.id>>', { owner: undefined }, 'cart.owner in <<cart.owner.id>> is undefined'],
    ['<<cart.owner.id>>', undefined, 'cart in <<cart.owner.id>> is undefined'],
    ['<<cart.name.length>>', { name: 'abc' }, 'cart.name in <<cart.name.length>> is a string'],
    ['<<cart.f.name>>', { f: () => 1 }, 'cart.f in <<cart.f.name>> is a function'],
    ['<<cart.constructor>>', {}, 'has no constructor'],
    ['<<cart.constructor.name>>', {}, 'has no constructor'],
    ['<<cart.__proto__.x>>', {}, 'has no __proto__'],
    ['<<cart.toString>>', {}, 'has no toString'],
    ['<<cart.tags.2>>', { tags: ['a', 'b'] }, 'cart.tags in <<cart.tags.2>> has no 2'],
    ['<<cart.size>>', new Map([['size', 1]]), 'has no size'],
    ['<<cart.size>>', { size: {} }, '<<cart.size>> is an object'],
  ])('the path %s on %o', (template, cart, fault) => {
    expect(refusal(() => compile(template, named('cart')).render([cart])).message).toContain(fault);
  });

  it('an accessor that throws, with the cause', () => {
    const cause = new Error('not loaded');
    const cart = {
      get id(): string {
        throw cause;
      },
    };
    const error = refusal(() => compile('<<cart.id>>', named('cart')).render([cart]));
    expect(error.cause).toBe(cause);
    expect(error.message).toContain('<<cart.id>>');
    expect(error.message).not.toContain('not loaded');
  });

  it('a $name without a context, with none of that name, or with a lookup that throws', () => {
    const key = compile('<<$tenant>>', named());
    expect(refusal(() => key.render([])).message).toContain('<<$tenant>> is undefined');
    expect(refusal(() => key.render([], () => undefined)).message).toContain('context option');
    const cause = new Error('no store');
    const error = refusal(() =>
      key.render([], () => {
        throw cause;
      }),
    );
    expect(error.cause).toBe(cause);
    const nested = refusal(() => compile('<<$tenant.user.id>>', named()).render([]));
    expect(nested.message).toContain('$tenant in <<$tenant.user.id>> is undefined');
    expect(nested.message).toContain('context option');
  });

  it('a rest parameter as a whole', () => {
    const key = compile('<<ids>>', [{ name: 'ids', rest: true }]);
    expect(refusal(() => key.render(['a', 'b'])).message).toContain('<<ids>> is an array');
  });

  it('a key beyond the limit, without showing the value', () => {
    const key = compile('k:<<a>>', named('a'));
    const { message } = refusal(() => key.render(['secret'.repeat(20_000)]));
    expect(message).toContain(`${MAX_KEY_BYTES} is the limit`);
    expect(message).not.toContain('secret');
    expect(key.render(['x'.repeat(MAX_KEY_BYTES - 2)])[0]).toHaveLength(MAX_KEY_BYTES);
    refusal(() => key.render(['x'.repeat(MAX_KEY_BYTES - 1)]));
  });
});

describe('lockKey', () => {
  it('renders exactly as the compiled key of a method does', () => {
    const values = { id: 'a:b', cart: { owner: { id: 1 } } };
    for (const template of ['order:<<id>>', '{<<id>>}:<<cart.owner.id>>', 'plain']) {
      expect([lockKey(template, values)]).toEqual(
        compile(template, named('id', 'cart')).render([values.id, values.cart]),
      );
    }
  });

  it('takes indexes from an array, $names as they are written, and getters of a class', () => {
    class Dto {
      get sku(): string {
        return 's1';
      }
    }
    expect(lockKey('<<0>>:<<1.id>>', ['a', { id: 2 }])).toBe('a:2');
    expect(lockKey('<<$tenant>>:<<id>>', { $tenant: 't', id: 1 })).toBe('t:1');
    expect(lockKey('sku:<<sku>>', new Dto())).toBe('sku:s1');
  });

  it.each(['id', 'constructor', '__proto__', 'toString', '0', '$tenant'])(
    'refuses the unknown name %s',
    (name) => {
      expect(refusal(() => lockKey(`k:<<${name}>>`, { other: 1 })).message).toBe(
        `lockKey: no lock key from "k:<<${name}>>": there is no ${name} in the values given.`,
      );
    },
  );

  it('refuses bad templates, bad values and values that are no object', () => {
    for (const template of ['', '<<id', '<<id>><<id>>', undefined as unknown as string]) {
      refusal(() => lockKey(template, { id: 1 }));
    }
    refusal(() => lockKey('<<id>>', { id: undefined }));
    for (const values of [undefined, null, 'id', 1, () => 1])
      refusal(() => lockKey('<<id>>', values as object));
  });

  it('reads names that data from outside may carry only when they are own properties', () => {
    expect(lockKey('k:<<__proto__>>', JSON.parse('{"__proto__":"own"}') as object)).toBe('k:own');
  });
});
