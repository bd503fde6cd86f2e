import { describe, expect, it } from 'vitest';
import { compileKey } from '../../../lib/key/key-template.js';
import type { Parameter } from '../../../lib/key/parameter-names.js';

const plain = (name: string): Parameter => ({ name, rest: false });
const PARAMETERS: readonly Parameter[] = [
  plain('id'),
  plain('user'),
  plain('a_b'),
  { name: undefined, rest: false, paths: new Map([['city', 'address.city']]) },
];
const compile = (template: string) =>
  compileKey(template, { className: 'Orders', methodName: 'pay', parameters: PARAMETERS });

describe("a parameter's name in the syntax of another library", () => {
  it.each([
    ['a:<id>', 'a:<<id>>'],
    ['a:$id', 'a:<<id>>'],
    ['a:[id]', 'a:<<id>>'],
    ['a:(id)', 'a:<<id>>'],
    ['a:{id}', 'a:<<id>>'],
    ['a:${id}', 'a:<<id>>'],
    ['a:#{id}', 'a:<<id>>'],
    ['a:%{id}', 'a:<<id>>'],
    ['a:@{id}', 'a:<<id>>'],
    ['a:{{id}}', 'a:<<id>>'],
    ['a:{{ id }}', 'a:<<id>>'],
    ['a:${ id }', 'a:<<id>>'],
    ['a:< id >', 'a:<<id>>'],
    ['a:<%= id %>', 'a:<<id>>'],
    ['a:<%id%>', 'a:<<id>>'],
    ['a:[[id]]', 'a:<<id>>'],
    ['a:%id%', 'a:<<id>>'],
    ['a:%id', 'a:<<id>>'],
    ['a:@id', 'a:<<id>>'],
    ['a:#id', 'a:<<id>>'],
    ['a:&id', 'a:<<id>>'],
    ['a:*id*', 'a:<<id>>'],
    ['a:|id|', 'a:<<id>>'],
    ['a:~id', 'a:<<id>>'],
    ["a:'id'", 'a:<<id>>'],
    ['a:«id»', 'a:<<id>>'],
    ['a:__id__', 'a:<<id>>'],
    ['a:_id_', 'a:<<id>>'],
    ['a:id', 'a:<<id>>'],
    ['a::id', 'a::<<id>>'],
    ['<id>', '<<id>>'],
    ['$id', '<<id>>'],
    ['[id]', '<<id>>'],
    ['a-<id>-b', 'a-<<id>>-b'],
    ['a:<user.id>', 'a:<<user.id>>'],
    ['a:$user.id', 'a:<<user.id>>'],
    ['a:[user?.id]', 'a:<<user.id>>'],
    ['a:<id>:$user', 'a:<<id>>:<<user>>'],
    ['a:<a_b>', 'a:<<a_b>>'],
    ['a:<city>', 'a:<<3.address.city>>'],
    ['a:<$tenant>', 'a:<<$tenant>>'],
    ['a:$request.user.id', 'a:<<req.user.id>>'],
    ['a:<$request.user.id>', 'a:<<req.user.id>>'],
    ['a:{$tenant.id}', 'a:<<$tenant.id>>'],
    ['a:<<user>>:<id>', 'a:<<user>>:<<id>>'],
    ['a:<<user>>:${id}', 'a:<<user>>:<<id>>'],
    ['a:<id>:<<user>>', 'a:<<id>>:<<user>>'],
  ])('%s is refused, and %s is shown', (template, meant) => {
    expect(() => compile(template)).toThrow(
      expect.objectContaining({
        code: 'LOCK_KEY_INVALID',
        message: expect.stringContaining(
          `Write ${JSON.stringify(meant)}; if the text is meant as it is`,
        ) as string,
      }),
    );
  });

  it.each([
    'a:<<id>>',
    'a:{<<id>>}:b',
    'a:<<id>>:user',
    '{user}:<<id>>',
    'a:<identity>',
    'a:$idle',
    'a:[other]',
    'a:$tenant',
    'a:${tenant}',
    'price:$',
    'paid',
    'order-id',
    'orders.id',
    'a:idle',
    'a:<>',
    'nightly report',
  ])('%s is no mistake', (template) => {
    expect(() => compile(template)).not.toThrow();
  });
});

describe("a template that is a parameter's name", () => {
  it.each([
    ['id', '<<id>>'],
    ['user.id', '<<user.id>>'],
    ['user?.address.city', '<<user.address.city>>'],
    ['city', '<<3.address.city>>'],
  ])('%s is refused, and both forms are shown', (template, meant) => {
    expect(() => compile(template)).toThrow(
      `Orders.pay(id, user, a_b, {…}): the lock key "${template}" is a parameter's name and no placeholder. For one lock ` +
        `for each value write "${meant}"; for one lock for all calls write () => "${template}".`,
    );
  });

  it('is refused in a list, too', () => {
    const site = { className: 'Orders', methodName: 'pay', parameters: PARAMETERS };
    expect(() => compileKey(['order:<<id>>', 'user.id'], site)).toThrow('"<<user.id>>"');
  });

  it.each(['ident', 'users', 'users.id', 'id:all', 'id.', '.id'])('%s is none', (template) => {
    expect(() => compile(template)).not.toThrow();
  });
});
