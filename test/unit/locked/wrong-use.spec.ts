// What people write by mistake, mostly past the types: each is an error when the class is loaded that says what to do.
import 'reflect-metadata';
import { compileFunction } from 'node:vm';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { LockConfigurationError, LockKeyError, Locked } from 'nest-redis-lock';

/** For what the types refuse already: code without types can still do it. */
const untyped = Locked as unknown as (...args: unknown[]) => MethodDecorator;
const bare = Locked as unknown as MethodDecorator & ClassDecorator & PropertyDecorator;

const loading = (declare: () => unknown): Error => {
  try {
    declare();
  } catch (error) {
    return error as Error;
  }
  return expect.fail('the class was loaded');
};

/** Loads a class whose method has this key and these options. */
const declaring = (...args: unknown[]): Error =>
  loading(() => {
    class Orders {
      @untyped(...args)
      async pay(userId: string, cart: { id: string }): Promise<string> {
        return userId + cart.id;
      }
    }
    return Orders;
  });

/** Runs a source as a compiler without `experimentalDecorators` makes it. */
const withStandardDecorators = (source: string): Error =>
  loading(() => {
    const { outputText } = ts.transpileModule(source, {
      compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.CommonJS },
    });
    return (compileFunction(outputText, ['Locked']) as (locked: unknown) => unknown)(Locked);
  });

describe('@Locked without parentheses never leaves a method unlocked', () => {
  it('on a method', () => {
    const error = loading(() => {
      class Orders {
        @bare
        async pay(): Promise<void> {}
      }
      return Orders;
    });
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error.message).toMatch(/^Orders\.pay: write @Locked\('nightly-report'\), with parentheses/);
  });

  it('on a method whose name is a symbol, on a static method, on a getter, on a property', () => {
    const name = Symbol('pay');
    const declarations = [
      () => {
        class Orders {
          @bare
          async [name](): Promise<void> {}
        }
        return Orders;
      },
      () => {
        class Orders {
          @bare
          static async pay(): Promise<void> {}
        }
        return Orders;
      },
      () => {
        class Orders {
          @bare
          get pay(): number {
            return 1;
          }
        }
        return Orders;
      },
      () => {
        class Orders {
          @bare
          pay = 1;
        }
        return Orders;
      },
    ];
    for (const declare of declarations) {
      const error = loading(declare);
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(error.message).toMatch(/^Orders\..*pay.*: write @Locked\('nightly-report'\), with parentheses/);
    }
  });

  it('on a class, with parentheses or without', () => {
    for (const decorator of [bare, untyped('key') as unknown as ClassDecorator]) {
      const error = loading(() => {
        @decorator
        class Orders {}
        return Orders;
      });
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(error.message).toMatch(/^Orders: a class cannot be @Locked.*each of its methods/s);
    }
  });
});

describe('standard decorators are told from those of Nest, and the error names the compiler option', () => {
  it.each([
    ['a method', "class Orders { @Locked('order') async pay() {} }", 'pay (a method)'],
    ['a method, without parentheses', 'class Orders { @Locked async pay() {} }', 'pay (a method)'],
    ['a getter', "class Orders { @Locked('order') get total() { return 1; } }", 'total (a getter)'],
    ['a field', "class Orders { @Locked('order') total = 1; }", 'total (a field)'],
    ['a class', "@Locked('order') class Orders {}", 'Orders (a class)'],
  ])('%s', (_what, source, subject) => {
    const { message } = withStandardDecorators(source);
    expect(message.startsWith(`${subject}: @Locked needs`), message).toBe(true);
    expect(message).toContain('"experimentalDecorators": true');
  });
});

describe('options that would do nothing are refused', () => {
  it('options after the options', () => {
    expect(declaring('order', { waitMs: 5 }, () => ({}), { leaseMs: 5 }).message).toMatch(
      /nothing after these/,
    );
  });

  it('but an explicit undefined does nothing anywhere, so it may be there', () => {
    class Orders {
      @untyped('order', { wait: undefined, onBusy: 'skip', waitMs: undefined })
      async pay(): Promise<void> {}
    }
    expect(Orders).toBeTypeOf('function');
  });
});

describe('placeholders of other libraries are refused, and the right form is shown', () => {
  it.each([
    ['order:${userId}', 'order:<<userId>>'],
    ['order:${cart.id}', 'order:<<cart.id>>'],
    ['order:${ cart?.id }:x', 'order:<<cart.id>>:x'],
    ['order:{userId}', 'order:<<userId>>'],
    ['order:{userId}:{cart.id}', 'order:<<userId>>:<<cart.id>>'],
    ['order:#userId', 'order:<<userId>>'],
    ['order:#{userId}', 'order:<<userId>>'],
    ['order:#cart.id', 'order:<<cart.id>>'],
    ['order:userId:x', 'order:<<userId>>:x'],
    ['order:{userId}:{slot}', 'order:<<userId>>:{slot}'],
  ])('%s', (template, meant) => {
    for (const key of [template, ['other', template]]) {
      const error = declaring(key);
      expect(error).toBeInstanceOf(LockKeyError);
      expect(error.message).toContain('Orders.pay(userId, cart)');
      expect(error.message).toContain(`Write "${meant}"`);
      expect(error.message).toContain(`() => "${template}"`);
    }
  });

  it('what a method takes out of a destructured parameter is shown by its path', () => {
    const error = loading(() => {
      class Orders {
        @Locked('order:{id}')
        async pay({ id }: { id: string }): Promise<string> {
          return id;
        }
      }
      return Orders;
    });
    expect(error.message).toContain('Write "order:<<0.id>>"');
  });

  it.each([
    'order:{slot}',
    'order:${tenant}',
    'order:userIds',
    'order:user',
    'users',
    '#1',
    'order:{<<userId>>}',
    'userId:<<userId>>',
    'order:userId:<<cart.id>>',
  ])('%s is a key as it is', (key) => {
    class Orders {
      @Locked(key)
      async pay(userId: string, cart: { id: string }): Promise<string> {
        return userId + cart.id;
      }
    }
    expect(Orders).toBeTypeOf('function');
  });
});

describe('a name that a method takes out of a parameter', () => {
  const PATHS: Record<string, string> = {
    id: '<<0.id>>',
    owner: '<<0.user.owner>>',
    renamed: '<<0.sku>>',
    withDefault: '<<0.withDefault>>',
    second: '<<1.1>>',
    'id.value': '<<0.id.value>>',
  };

  it.each(Object.entries(PATHS))('%s is shown as %s', (name, placeholder) => {
    const error = loading(() => {
      class Orders {
        @Locked(`order:<<${name}>>`)
        async pay(
          {
            id,
            user: { owner },
            sku: renamed,
            withDefault = '',
          }: { id: string; user: { owner: string }; sku: string; withDefault?: string },
          [, second]: string[],
        ): Promise<string> {
          return `${id}${owner}${renamed}${withDefault}${second}`;
        }
      }
      return Orders;
    });
    expect(error).toBeInstanceOf(LockKeyError);
    expect(error.message).toContain(`Write ${placeholder}.`);
  });
});
