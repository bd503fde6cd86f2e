import { describe, expect, it } from 'vitest';
import { LockKeyError } from '../../../lib/core/errors/lock.errors.js';
import { compileKey, lockKey, type RequestPathOf } from '../../../lib/key/key-template.js';
import { MAX_KEY_BYTES } from '../../../lib/key/key-check.js';

/** Returns the placeholder that the client is told about; undefined when the mistake is the code's. */
const toldOf = (
  template: string,
  args: readonly unknown[],
  { request, requestPathOf }: { request?: unknown; requestPathOf?: RequestPathOf } = {},
): string | undefined => {
  const key = compileKey(template, {
    className: 'Orders',
    methodName: 'pay',
    parameters: ['a', 'b'].map((name) => ({ name, rest: false })),
  });
  try {
    key.render(args, () => request, requestPathOf);
  } catch (error) {
    expect(error).toBeInstanceOf(LockKeyError);
    return (error as LockKeyError).clientPlaceholder;
  }
  throw new Error('It was rendered.');
};

const TOO_LONG = 'x'.repeat(MAX_KEY_BYTES);

describe('a value that the client sent', () => {
  it.each(['headers', 'query', 'params', 'body'])('is one in $request.%s', (part) => {
    const placeholder = `<<$request.${part}.id>>`;
    for (const id of [undefined, null, '', {}, ['x'], Number.NaN, '\ud800', TOO_LONG]) {
      expect(toldOf(`k:${placeholder}`, [], { request: { [part]: { id } } })).toBe(placeholder);
    }
    expect(toldOf(`k:${placeholder}`, [], { request: { [part]: {} } })).toBe(placeholder);
    expect(toldOf(`k:<<$request.${part}.id.x|none>>`, [], { request: { [part]: { id: 'x' } } })).toBe(
      `<<$request.${part}.id.x>>`,
    );
  });

  it('is a body that is missing, or is a whole object', () => {
    for (const request of [{}, { body: undefined }, { body: { id: 7 } }]) {
      expect(toldOf('<<$request.body>>', [], { request })).toBe('<<$request.body>>');
    }
    expect(toldOf('<<$request.body.id>>', [], { request: { body: undefined } })).toBe('<<$request.body.id>>');
  });

  it('is a parameter that the caller says is one', () => {
    const requestPathOf: RequestPathOf = (index) => (index === 1 ? ['query', 'id'] : undefined);
    expect(toldOf('<<a>>:<<b>>', ['x', ''], { requestPathOf })).toBe('<<b>>');
    expect(toldOf('<<a>>:<<1.x>>', ['x', {}], { requestPathOf })).toBe('<<1.x>>');
    expect(toldOf('<<a>>:<<b>>', ['', 'x'], { requestPathOf })).toBeUndefined();
  });

  it('is told of when it is the longest of a key that is too long', () => {
    const requestPathOf: RequestPathOf = (index) => (index === 1 ? ['query', 'id'] : undefined);
    expect(toldOf('<<a>>:<<b>>', ['x', TOO_LONG], { requestPathOf })).toBe('<<b>>');
    expect(toldOf('<<a>>:<<b>>', [TOO_LONG, 'x'], { requestPathOf })).toBeUndefined();
  });
});

describe('a mistake in the code is', () => {
  it.each([
    ['what a guard adds', '<<$request.user.id>>', { user: {} }],
    ['a request that is not there', '<<$request.query.id>>', undefined],
    ['the request itself', '<<$request>>', {}],
    ['a part that the request does not have', '<<$request.querry.id>>', {}],
    ['a missing part of a request that is none of HTTP', '<<$request.query.id>>', {}],
    ['all headers', '<<$request.headers>>', { headers: {} }],
    ['the whole query', '<<$request.query>>', { query: {} }],
    ['all params', '<<$request.params>>', { params: {} }],
    ['a value of the context', '<<$tenant.query.id>>', { query: {} }],
  ])('%s', (_, template, request) => {
    expect(toldOf(template, [], { request })).toBeUndefined();
  });

  it('a parameter that gets the whole query', () => {
    expect(toldOf('<<a>>', [{}], { requestPathOf: () => ['query'] })).toBeUndefined();
    expect(toldOf('<<a.id>>', [{}], { requestPathOf: () => ['query'] })).toBe('<<a.id>>');
    expect(toldOf('<<a>>', [{}], { requestPathOf: () => ['body'] })).toBe('<<a>>');
  });

  it('a value whose reading throws', () => {
    const query = { get id(): string { throw new Error('no'); } }; // prettier-ignore
    expect(toldOf('<<$request.query.id>>', [], { request: { query } })).toBeUndefined();
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
