import {
  Controller,
  Get,
  Header,
  HttpCode,
  Injectable,
  Scope,
  SetMetadata,
  UseGuards,
  type DynamicModule,
} from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { Cron } from '@nestjs/schedule';
import { ApiOperation } from '@nestjs/swagger';
import { describe, expect, it } from 'vitest';
import { Limited, Locked, RedisLockModule } from 'nest-redis-lock';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

/** What an app with these warns of at its start. */
const warningsOf = (metadata: Omit<DynamicModule, 'module'>): Promise<string[]> =>
  apps.warningsOf(rootModule(world.options(), metadata));

const order: string[] = [];

/** Wraps a method, as decorators for transactions, caches and retries do. */
const Transactional =
  () =>
  <M extends (...args: never[]) => Promise<unknown>>(
    _target: object,
    _name: string | symbol,
    descriptor: TypedPropertyDescriptor<M>,
  ): void => {
    const original = descriptor.value as M;
    const wrapped = async function (this: unknown, ...args: never[]): Promise<unknown> {
      order.push(`begin, ${(await world.isTaken('order')) ? 'locked' : 'free'}`);
      const result = await original.apply(this, args);
      order.push(`commit, ${(await world.isTaken('order')) ? 'locked' : 'free'}`);
      return result;
    };
    descriptor.value = wrapped as M;
  };

@Injectable()
class LockInsideTransaction {
  @Transactional()
  @Locked('order')
  async pay(): Promise<string> {
    return world.work('order');
  }
}

@Injectable()
class LockAroundTransaction {
  @Locked('order')
  @Transactional()
  async pay(): Promise<string> {
    return world.work('order');
  }
}

describe('a decorator that wraps', () => {
  it('above @Locked is warned of at start-up, by class and method', async () => {
    const warnings = await warningsOf({ providers: [LockInsideTransaction] });
    expect(warnings).toEqual([expect.stringContaining('LockInsideTransaction.pay')]);
    expect(warnings[0]).toContain('put @Locked on top');
  });

  it('above @Locked is warned of once, also when two modules provide the class', async () => {
    const twice = { module: class Other {}, providers: [LockInsideTransaction] };
    const warnings = await warningsOf({ imports: [twice], providers: [LockInsideTransaction] });
    expect(warnings).toHaveLength(1);
  });

  it.each([Scope.REQUEST, Scope.TRANSIENT])('above @Locked is warned of in scope %i', async (scope) => {
    @Injectable({ scope })
    class Scoped {
      @Transactional()
      @Locked('order')
      async pay(): Promise<string> {
        return world.work('order');
      }
    }
    expect(await warningsOf({ providers: [Scoped] })).toEqual([expect.stringContaining('Scoped.pay')]);
  });

  it('below @Locked runs inside the lock, without a warning', async () => {
    expect(await warningsOf({ providers: [LockAroundTransaction] })).toEqual([]);
    order.length = 0;
    const app = await apps.context(rootModule(world.options(), { providers: [LockAroundTransaction] }));
    await app.get(LockAroundTransaction).pay();
    expect(order).toEqual(['begin, locked', 'commit, locked']);
  });
});

describe('two @Locked on one method', () => {
  @Injectable()
  class Twice {
    @Locked('order:<<id>>')
    @Locked('user:<<id>>')
    async pay(id: string): Promise<string> {
      return id;
    }
  }

  it('are warned of as that, once, and the warning shows the form that takes both at once', async () => {
    const warnings = await warningsOf({ providers: [Twice] });
    expect(warnings).toEqual([
      expect.stringMatching(/^Twice\.pay has two @Locked\. .*@Locked\(\['a:<<x>>', 'b:<<y>>'\]\)/),
    ]);
  });

  it('are warned of together with what is wrapped above both', async () => {
    @Injectable()
    class Wrapped {
      @Transactional()
      @Locked('order')
      @Locked('user')
      async pay(): Promise<string> {
        return 'paid';
      }
    }
    const warnings = await warningsOf({ providers: [Wrapped] });
    expect(warnings.sort()).toEqual([
      expect.stringContaining('Wrapped.pay has two @Locked'),
      expect.stringContaining('Wrapped.pay: a decorator above @Locked'),
    ]);
  });

  it('are as they should be where they are of two modules: there is no other way to hold both', async () => {
    @Injectable()
    class Both {
      @Locked('order')
      @Locked('order', { service: 'billing' })
      async pay(): Promise<string> {
        return 'paid';
      }
    }
    const billing = RedisLockModule.forRoot({ ...world.options(), name: 'billing', keyPrefix: 'billing:' });
    expect(await warningsOf({ imports: [billing], providers: [Both] })).toEqual([]);
  });
});

describe('decorators of Nest above @Locked', () => {
  it('do not wrap, so nothing is warned of', async () => {
    @Controller()
    class Plain {
      @Get('a')
      @HttpCode(202)
      @Header('x-a', 'b')
      @UseGuards()
      @SetMetadata('role', 'admin')
      @ApiOperation({ summary: 'a' })
      @Cron('0 0 1 1 *')
      @OnEvent('a')
      @Locked('a')
      async a(): Promise<void> {}
    }
    expect(await warningsOf({ controllers: [Plain] })).toEqual([]);
  });
});

describe('@Limited, at the start of the app,', () => {
  it('is not suspicious beside @Locked or another @Limited, whichever is above', async () => {
    @Injectable()
    class Orders {
      @Locked('order')
      @Limited('bank', { permits: 3 })
      async lockedFirst(): Promise<void> {}

      @Limited('bank', { permits: 3 })
      @Locked('order')
      async limitedFirst(): Promise<void> {}

      @Limited('bank:acme', { permits: 1 })
      @Limited('bank', { permits: 3 })
      async twice(): Promise<void> {}
    }
    expect(await warningsOf({ providers: [Orders] })).toEqual([]);
  });

  it('is named where something wraps it, or where an override drops it', async () => {
    class Base {
      @Limited('bank', { permits: 3 })
      async pay(): Promise<void> {}
    }

    @Injectable()
    class Orders extends Base {
      override async pay(): Promise<void> {}

      @Transactional()
      @Limited('books', { permits: 3 })
      async book(): Promise<void> {}
    }
    const warnings = await warningsOf({ providers: [Orders] });
    expect(warnings).toHaveLength(2);
    expect(warnings.join('\n')).toContain('Orders.book: a decorator above @Limited wraps the method');
    expect(warnings.join('\n')).toContain('the permit is released before the commit: put @Limited on top');
    expect(warnings.join('\n')).toContain(
      'Orders.pay overrides Base.pay, which is @Limited, and runs without a permit. Put @Limited on it',
    );
  });
});
