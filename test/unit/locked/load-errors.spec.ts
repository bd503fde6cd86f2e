import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import {
  currentLease,
  Limited,
  LockConfigurationError,
  LockError,
  LockKeyError,
  LockNotAcquiredError,
  Locked,
  LOCKED_METADATA,
} from 'nest-redis-lock';
import { lockedInstance } from './fixture.js';

/** What loading a class throws. */
const loading = (declare: () => unknown): LockError => {
  try {
    declare();
  } catch (error) {
    expect(error).toBeInstanceOf(LockError);
    return error as LockError;
  }
  return expect.fail('the class was loaded');
};

/** For what the types refuse already: code without types can still do it. */
const untyped = Locked as unknown as (...args: unknown[]) => MethodDecorator;

describe('what cannot be locked fails when the class is loaded', () => {
  it('a static method', () => {
    const error = loading(() => {
      class Orders {
        @Locked('order')
        static async pay(): Promise<void> {}
      }
      return Orders;
    });
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error.message).toMatch(/^Orders\.pay: a static method cannot be @Locked/);
  });

  it('a getter', () => {
    const error = loading(() => {
      class Orders {
        @untyped('order')
        get total(): number {
          return 1;
        }
      }
      return Orders;
    });
    expect(error.message).toMatch(/^Orders\.total: only methods can be @Locked/);
  });

  it('a property', () => {
    const error = loading(() => {
      class Orders {
        @(untyped('order') as PropertyDecorator)
        total = 1;
      }
      return Orders;
    });
    expect(error.message).toMatch(/^Orders\.total: only methods can be @Locked/);
  });

  it('a synchronous method, when its return type is declared', () => {
    const declarations = {
      text: () => {
        class Orders {
          @untyped('order')
          pay(): string {
            return '';
          }
        }
        return Orders;
      },
      number: () => {
        class Orders {
          @untyped('order')
          pay(): number {
            return 1;
          }
        }
        return Orders;
      },
      list: () => {
        class Orders {
          @untyped('order')
          pay(): string[] {
            return [];
          }
        }
        return Orders;
      },
      generator: () => {
        class Orders {
          @untyped('order')
          *pay(): Generator<number> {
            yield 1;
          }
        }
        return Orders;
      },
    };
    for (const [name, declare] of Object.entries(declarations)) {
      const error = loading(declare);
      expect(error, name).toBeInstanceOf(LockConfigurationError);
      expect(error.message).toMatch(
        /^Orders\.pay: .*must return a Promise, an Observable or an AsyncIterable/,
      );
      expect(error.message).toContain('Make it async');
    }
  });
});

describe('a decorator without a key fails when the class is loaded, with the key that it had before', () => {
  const decorators = Object.entries({ '@Locked': Locked, '@Limited': Limited });
  const notKeys: readonly (readonly [string, ...unknown[]])[] = [
    ['nothing'],
    ['undefined', undefined],
    ['undefined and options', undefined, { waitMs: 5 }],
    ['options alone', { onBusy: 'skip', holdAtLeastMs: 30_000 }],
    ['options with a wrong name', { wait: 5 }],
    ['two objects', { waitMs: 5 }, { leaseMs: 5 }],
    ['null', null],
    ['a number', 7],
    ['a symbol', Symbol('key')],
    ['another object', new Map()],
  ];

  describe.each(decorators)('%s', (name, decorator) => {
    it.each(notKeys)('%s', (_what, ...args) => {
      const error = loading(() => {
        class Jobs {
          @((decorator as unknown as typeof untyped)(...args))
          async nightly(): Promise<void> {}
        }
        return Jobs;
      });
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(error.message).toBe(
        `\`Jobs.nightly\`: give ${name} a key, such as \`${name}('nightly-report')\`; before 0.3 the key was \`'Jobs.nightly'\``,
      );
    });
  });

  it('and this key, written out, is the same lock', async () => {
    class Jobs {
      @Locked('Jobs.nightly')
      async nightly(): Promise<string> {
        return currentLease().key;
      }
    }
    const { instance, locks } = lockedInstance(Jobs);
    expect(await instance.nightly()).toBe('Jobs.nightly');
    await using _held = await locks.acquire('Jobs.nightly');
    await expect(instance.nightly()).rejects.toBeInstanceOf(LockNotAcquiredError);
  });

  it('and a class without a name may have a key', () => {
    const anonymous = (() =>
      class {
        async pay(): Promise<void> {}
      })();
    const descriptor = Object.getOwnPropertyDescriptor(anonymous.prototype, 'pay')!;
    expect(() => untyped('order')(anonymous.prototype, 'pay', descriptor)).not.toThrow();
  });
});

describe('a wrong key fails when the class is loaded, naming class, method and parameters', () => {
  it.each([
    ['a name that is no parameter', 'order:<<nam>>', '<<nam>>'],
    ['an index behind the last parameter', 'order:<<2>>', '<<2>>'],
    ['an empty key', '', 'empty'],
    ['an opened placeholder', 'order:<<id', '<<'],
    ['a closed placeholder that was not opened', 'order:id>>', '>>'],
    ['an empty placeholder', 'order:<<>>', '<<>>'],
    ['two placeholders side by side', '<<id>><<name>>', ':'],
    ['two placeholders without a colon between them', '<<id>>-<<name>>', ':'],
    ['an empty list', [], 'empty'],
    ['an empty key in a list', ['order:<<id>>', ''], 'empty'],
    ['a number in a list', [7], 'must be a string'],
    ['null in a list', [null], 'must be a string'],
  ])('%s', (_what, key, part) => {
    const error = loading(() => {
      class Orders {
        @untyped(key)
        async pay(id: string, name: string): Promise<string> {
          return id + name;
        }
      }
      return Orders;
    });
    expect(error).toBeInstanceOf(LockKeyError);
    expect(error.message).toContain('Orders.pay(id, name)');
    expect(error.message).toContain(part);
  });
});

describe('the wrapper', () => {
  it('has name and length of the method', () => {
    class Orders {
      @Locked('order:<<id>>')
      async pay(id: string, total: number): Promise<string> {
        return `${id}${total}`;
      }
    }
    expect([Orders.prototype.pay.name, Orders.prototype.pay.length]).toEqual(['pay', 2]);
  });

  it('copies metadata that decorators below it have left, and shares no object with the next method', () => {
    const mark = Symbol('mark');
    class Orders {
      @Locked('order')
      @Reflect.metadata(mark, 'below')
      async pay(): Promise<void> {}

      @Locked('order')
      async other(): Promise<void> {}
    }
    expect(Reflect.getMetadata(mark, Orders.prototype, 'pay')).toBe('below');
    expect(Reflect.getOwnMetadataKeys(Orders.prototype.other)).toEqual([LOCKED_METADATA]);
  });

  it('copies metadata that sits on the function itself, which is where Nest keeps it', () => {
    const onFunction: MethodDecorator = (_target, _name, descriptor) => {
      Reflect.defineMetadata('path', '/pay', descriptor.value as object);
    };
    class Orders {
      @Locked('order')
      @onFunction
      async pay(): Promise<void> {}
    }
    expect(Reflect.getMetadata('path', Orders.prototype.pay)).toBe('/pay');
  });

  it.each([
    [
      'readers with oncePerMs',
      [{ key: 'a', mode: 'read' }, 'b'],
      { oncePerMs: 60_000 },
      'mode must be exclusive',
    ],
    [
      'readers with mode fair',
      ['b', { key: 'a', mode: 'read' }],
      { mode: 'fair' },
      '"a" has a mode, and the call',
    ],
    ['two kinds of lock on one key', ['a', { key: 'a', mode: 'read' }], {}, '"a"'],
  ])('a list of keys: %s', (_, keys, options, message) => {
    const error = loading(() => {
      class Orders {
        @untyped(keys, options)
        async pay(): Promise<void> {}
      }
      return Orders;
    });
    expect(error.message).toContain(`Orders.pay: ${message}`);
  });

  it('oncePerMs on a method that returns a stream, which does not tell whether it succeeded', () => {
    const error = loading(() => {
      class Orders {
        @untyped('order', { oncePerMs: 60_000 })
        async *rows(): AsyncGenerator<number> {
          yield 1;
        }
      }
      return Orders;
    });
    expect(error.message).toMatch(/^Orders\.rows: a method with oncePerMs must return a Promise/);
  });
});
