import { describe, expect, it } from 'vitest';
import { LockKeyError } from '../../../lib/core/errors/lock.errors.js';
import { compileKey, lockKey, type RequestPathOf } from '../../../lib/key/key-template.js';
import { MAX_KEY_BYTES } from '../../../lib/key/key-check.js';

const site = {
  className: 'Orders',
  methodName: 'pay',
  parameters: ['a', 'b'].map((name) => ({ name, rest: false })),
};

/** Returns the placeholder that the client is told about; undefined when the mistake is the code's. */
const toldOf = (
  template: string,
  args: readonly unknown[],
  requestPathOf?: RequestPathOf,
): string | undefined => {
  try {
    compileKey(template, site).render(args, (name) => ({ tenant: args[0] })[name], requestPathOf);
  } catch (error) {
    expect(error).toBeInstanceOf(LockKeyError);
    return (error as LockKeyError).clientPlaceholder;
  }
  throw new Error('It was rendered.');
};

/** The parameter `a` is this part of the request. */
const isPart =
  (...part: string[]): RequestPathOf =>
  (index, path) =>
    index === 0 ? [...part, ...path] : undefined;
const isRequest = isPart();
/** The parameter `a` has the request as its property `req`. */
const hasRequest: RequestPathOf = (_index, [first, ...path]) => (first === 'req' ? path : undefined);

const TOO_LONG = 'x'.repeat(MAX_KEY_BYTES);

describe('a value that the client sent', () => {
  it.each(['headers', 'query', 'params', 'body'])('is one in the part %s of a request', (part) => {
    const placeholder = `<<a.${part}.id>>`;
    for (const id of [undefined, null, '', {}, ['x'], Number.NaN, '\ud800', TOO_LONG]) {
      expect(toldOf(`k:${placeholder}`, [{ [part]: { id } }], isRequest)).toBe(placeholder);
      expect(toldOf(`k:<<a.req.${part}.id>>`, [{ req: { [part]: { id } } }], hasRequest)).toBe(
        `<<a.req.${part}.id>>`,
      );
    }
    expect(toldOf(`k:${placeholder}`, [{ [part]: {} }], isRequest)).toBe(placeholder);
    expect(toldOf(`k:<<a.${part}.id.x|none>>`, [{ [part]: { id: 'x' } }], isRequest)).toBe(
      `<<a.${part}.id.x>>`,
    );
  });

  it('is a body that is missing, or is a whole object', () => {
    for (const request of [{}, { body: undefined }, { body: { id: 7 } }]) {
      expect(toldOf('<<a.body>>', [request], isRequest)).toBe('<<a.body>>');
      expect(toldOf('<<a.req.body>>', [{ req: request }], hasRequest)).toBe('<<a.req.body>>');
    }
    expect(toldOf('<<a.body.id>>', [{ body: undefined }], isRequest)).toBe('<<a.body.id>>');
  });

  it('is a parameter that the caller says is one', () => {
    expect(toldOf('<<b>>:<<a>>', ['', 'x'], isPart('query', 'id'))).toBe('<<a>>');
    expect(toldOf('<<b>>:<<0.x>>', [{}, 'x'], isPart('query', 'id'))).toBe('<<0.x>>');
    expect(toldOf('<<b>>:<<a>>', ['x', ''], isPart('query', 'id'))).toBeUndefined();
  });

  it('is told of when it is the longest of a key that is too long', () => {
    expect(toldOf('<<b>>:<<a>>', [TOO_LONG, 'x'], isPart('query', 'id'))).toBe('<<a>>');
    expect(toldOf('<<b>>:<<a>>', ['x', TOO_LONG], isPart('query', 'id'))).toBeUndefined();
  });
});

describe('a mistake in the code is', () => {
  it.each([
    ['what a guard adds', '<<a.user.id>>', { user: {} }],
    ['the request itself', '<<a>>', {}],
    ['a part that the request does not have', '<<a.querry.id>>', {}],
    ['a missing part of a request that is none of HTTP', '<<a.query.id>>', {}],
    ['all headers', '<<a.headers>>', { headers: {} }],
    ['the whole query', '<<a.query>>', { query: {} }],
    ['all params', '<<a.params>>', { params: {} }],
    ['a header name in upper case, which no request has', '<<a.headers.X-Id>>', { headers: {} }],
    ['a value of the context', '<<$tenant.query.id>>', { query: {} }],
  ])('%s', (_, template, request) => {
    expect(toldOf(template, [request], isRequest)).toBeUndefined();
  });

  it.each([
    ['a context without its request', '<<a.req.query.id>>', {}],
    ['a context without its request, whose body is named', '<<a.req.body.id>>', {}],
    ['a missing part of its request', '<<a.req.query.id>>', { req: {} }],
    ['another property of the context', '<<a.query.id>>', { query: {} }],
  ])('%s', (_, template, context) => {
    expect(toldOf(template, [context], hasRequest)).toBeUndefined();
  });

  it('a parameter that gets the whole query', () => {
    expect(toldOf('<<a>>', [{}], isPart('query'))).toBeUndefined();
    expect(toldOf('<<a.id>>', [{}], isPart('query'))).toBe('<<a.id>>');
    expect(toldOf('<<a>>', [{}], isPart('body'))).toBe('<<a>>');
  });

  it('a value whose reading throws', () => {
    const query = { get id(): string { throw new Error('no'); } }; // prettier-ignore
    expect(toldOf('<<a.query.id>>', [{ query }], isRequest)).toBeUndefined();
  });

  it('a value of lockKey', () => {
    let thrown: unknown;
    try {
      lockKey('<<id>>', { id: '' });
    } catch (error) {
      thrown = error;
    }
    expect((thrown as LockKeyError).clientPlaceholder).toBeUndefined();
  });
});

describe('a template is refused when the class is loaded', () => {
  const refusal = (template: string, requestPathOf?: RequestPathOf): string => {
    try {
      compileKey(template, { ...site, ...(requestPathOf && { requestPathOf }) });
    } catch (error) {
      expect(error).toBeInstanceOf(LockKeyError);
      return (error as Error).message;
    }
    return 'it is taken';
  };

  it.each([
    [
      'pay:<<$request.headers.x-user>>',
      '@Headers() headers with <<headers.x-user>>, or @Req() req with <<req.headers.x-user>>; in a GraphQL resolver ' +
        '@Context() ctx with <<ctx.req.headers.x-user>>. A service gets the value from its caller.',
    ],
    [
      '<<$request.query.id|none>>',
      '@Query() query with <<query.id|none>>, or @Req() req with <<req.query.id|none>>;',
    ],
    ['<<$request.params.id>>', '@Param() params with <<params.id>>, or'],
    ['<<$request.body>>', '@Body() body with <<body>>, or'],
    ['<<$request.user.id>>', 'Write @Req() req with <<req.user.id>>;'],
    ['<<$request.constructor>>', 'Write @Req() req with <<req.constructor>>;'],
    ['<<$request>>', 'Write @Req() req with <<req>>;'],
  ])('when it reads the request by its context: %s', (template, shown) => {
    expect(refusal(template)).toContain(shown);
    expect(refusal(template)).toMatch(/^Orders\.pay\(a, b\): /);
  });

  it.each([
    ['<<a.headers.X-Tenant|none>>', '<<a.headers.x-tenant|none>>'],
    ['<<0.headers.X-Tenant>>', '<<0.headers.x-tenant>>'],
  ])('when it names a header in upper case: %s', (template, shown) => {
    expect(refusal(template, isRequest)).toContain(`header names are in lower case. Write ${shown}`);
    expect(refusal(template)).toBe('it is taken');
  });
});
