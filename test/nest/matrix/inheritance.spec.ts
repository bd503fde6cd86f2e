import { compileFunction } from 'node:vm';
import { Injectable, type Provider, type Type } from '@nestjs/common';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { currentLease, LockService, Locked } from 'nest-redis-lock';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

const make = async <T>(provider: Type<T>): Promise<{ instance: T; acquired: string[] }> => {
  const app = await apps.context(rootModule(world.options(), { providers: [provider] }));
  const acquired: string[] = [];
  app.get(LockService).on('acquired', ({ key }) => acquired.push(key));
  return { instance: app.get(provider), acquired };
};

@Injectable()
class Base {
  @Locked('order:<<id>>')
  async pay(id: string): Promise<string> {
    return world.work(`order:${id}`);
  }
}

abstract class Repository<T extends { id: string }> {
  @Locked('save:<<entity.id>>')
  async save(entity: T): Promise<string> {
    await this.write(entity);
    return world.work(`save:${entity.id}`);
  }

  protected abstract write(entity: T): Promise<void>;
}

@Injectable()
class OrderRepository extends Repository<{ id: string; total: number }> {
  readonly written: number[] = [];

  protected async write({ total }: { id: string; total: number }): Promise<void> {
    this.written.push(total);
  }
}

describe('an inherited method', () => {
  it('is locked in a class that inherits it', async () => {
    @Injectable()
    class Child extends Base {}
    const { instance } = await make(Child);
    await world.expectLocked('order:1', () => instance.pay('1'));
  });

  it('is locked when it comes from an abstract generic class', async () => {
    const { instance } = await make(OrderRepository);
    await world.expectLocked('save:7', () => instance.save({ id: '7', total: 5 }));
    expect(instance.written).toEqual([5]);
  });

  it('is locked when an override without the decorator calls it', async () => {
    @Injectable()
    class Child extends Base {
      override async pay(id: string): Promise<string> {
        return `child ${await super.pay(id)}`;
      }
    }
    const { instance, acquired } = await make(Child);
    await world.expectLocked('order:1', () => instance.pay('1'));
    expect(acquired).toEqual(['order:1']);
    await expect(instance.pay('1')).resolves.toBe('child done');
  });

  it('shares one hold with an override that is locked on the same key and nests it', async () => {
    const inside: { redis: string[]; held: number }[] = [];
    @Injectable()
    class Child extends Base {
      constructor(readonly locks: LockService) {
        super();
      }

      @Locked('order:<<id>>')
      override async pay(id: string): Promise<string> {
        const result = await currentLease().call(this, super.pay, id);
        // The inner section has ended, and must not have given back what the outer one holds.
        inside.push({ redis: await world.holds(), held: this.locks.held().length });
        return result;
      }
    }
    const { instance, acquired } = await make(Child);
    await world.expectLocked('order:1', () => instance.pay('1'));
    expect(acquired).toEqual(['order:1']);
    expect(inside).toEqual([{ redis: ['lock:order:1'], held: 1 }]);
  });

  it('takes both locks where the override has another key', async () => {
    @Injectable()
    class Child extends Base {
      @Locked('audit:<<id>>')
      override async pay(id: string): Promise<string> {
        return super.pay(id);
      }
    }
    const { instance, acquired } = await make(Child);
    await world.expectLocked('order:1', () => instance.pay('1'));
    await instance.pay('1');
    expect(acquired.slice(-2)).toEqual(['audit:1', 'order:1']);
  });

  it('has one lock for all subclasses, unless its key function reads the instance', async () => {
    abstract class Job {
      abstract readonly name: string;

      @Locked('job')
      async shared(): Promise<string> {
        return world.work('job');
      }

      @Locked(function () {
        return `job:${this.name}`;
      })
      async run(): Promise<string> {
        return world.work(`job:${this.name}`);
      }
    }
    @Injectable()
    class Invoices extends Job {
      readonly name = 'invoices';
    }
    @Injectable()
    class Reports extends Job {
      readonly name = 'reports';
    }
    const [{ instance: invoices }, { instance: reports }] = [await make(Invoices), await make(Reports)];
    for (const job of [invoices, reports]) {
      await world.expectLocked('job', () => job.shared());
      await world.expectLocked(`job:${job.name}`, () => job.run());
    }
  });

  it('of a mixin has a lock for each class that the mixin makes', async () => {
    const Synced = <Class extends Type<{ readonly table: string }>>(Base: Class) => {
      class Mixed extends Base {
        @Locked(function (this: Mixed, day: string) {
          return `sync:${this.table}:${day}`;
        })
        async sync(day: string): Promise<string> {
          return world.work(`sync:${this.table}:${day}`);
        }
      }
      return Mixed;
    };
    class Orders {
      readonly table = 'orders';
    }
    class Users {
      readonly table = 'users';
    }
    const [{ instance: orders }, { instance: users }] = [
      await make(Synced(Orders)),
      await make(Synced(Users)),
    ];
    await world.expectLocked('sync:orders:monday', () => orders.sync('monday'));
    await world.expectLocked('sync:users:monday', () => users.sync('monday'));
  });
});

describe('a subclass that overrides a locked method without a lock', () => {
  const warningsOf = (...providers: Provider[]): Promise<string[]> =>
    apps.warningsOf(rootModule(world.options(), { providers }));

  const Wrapped: MethodDecorator = (_target, _name, descriptor) => {
    const original = descriptor.value as unknown as (...args: unknown[]) => unknown;
    descriptor.value = function (this: unknown, ...args: unknown[]) {
      return original.apply(this, args);
    } as never;
  };

  it('is warned of at start-up, once, with both classes', async () => {
    @Injectable()
    class Child extends Base {
      override async pay(id: string): Promise<string> {
        return id;
      }
    }
    @Injectable()
    class Grandchild extends Child {}
    expect(await warningsOf(Child, Grandchild, Base)).toEqual([
      expect.stringMatching(
        /^Child\.pay overrides Base\.pay, which is @Locked, and runs without a lock\..*super\.pay\(\)/,
      ),
    ]);
  });

  it('is warned of when the class calls super elsewhere, or another decorator wraps the method', async () => {
    @Injectable()
    class Elsewhere extends Base {
      override async pay(id: string): Promise<string> {
        return id;
      }

      async payAll(): Promise<string> {
        return super.pay('all');
      }
    }
    @Injectable()
    class Decorated extends Base {
      @Wrapped
      override async pay(id: string): Promise<string> {
        return id;
      }
    }
    expect(await warningsOf(Elsewhere, Decorated)).toEqual([
      expect.stringContaining('Elsewhere.pay overrides Base.pay'),
      expect.stringContaining('Decorated.pay overrides Base.pay'),
    ]);
  });

  it('is fine when it calls super, directly or behind a decorator, or is locked itself', async () => {
    @Injectable()
    class Calling extends Base {
      override async pay(id: string): Promise<string> {
        return super.pay(id);
      }
    }
    @Injectable()
    class Decorated extends Base {
      @Wrapped
      override async pay(id: string): Promise<string> {
        return super.pay(id);
      }
    }
    @Injectable()
    class LockedItself extends Base {
      @Locked('other:<<id>>')
      override async pay(id: string): Promise<string> {
        return id;
      }
    }
    @Injectable()
    class BelowCalling extends Calling {
      override async pay(id: string): Promise<string> {
        return super['pay'](id);
      }
    }
    expect(await warningsOf(Calling, Decorated, LockedItself, BelowCalling)).toEqual([]);
  });

  it.each([ts.ScriptTarget.ES5, ts.ScriptTarget.ES2015, ts.ScriptTarget.ES2022])(
    'is told from one that calls super also as compiled for target %i',
    async (target) => {
      const source = `
        class Calling extends Base { async pay(id) { return super.pay(id); } }
        class Silent extends Base { async pay(id) { return id; } }
        give(Calling, Silent);`;
      const compilerOptions = { target, module: ts.ModuleKind.None, ignoreDeprecations: '6.0' };
      const { outputText } = ts.transpileModule(source, { compilerOptions });
      const classes: Type[] = [];
      const run = compileFunction(outputText, ['Base', 'give']) as (...args: unknown[]) => void;
      run(Base, (...given: Type[]) => classes.push(...given));
      // A class of ES5 cannot call the constructor of its parent here, but it overrides like any other.
      const instances = classes.map(({ prototype }) => ({
        provide: Symbol('instance'),
        useValue: Object.create(prototype as object) as object,
      }));
      expect(await warningsOf(...instances)).toEqual([
        expect.stringContaining('Silent.pay overrides Base.pay'),
      ]);
    },
  );
});
