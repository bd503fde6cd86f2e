// How a method is locked, as guards, interceptors and whatever looks through an app read it.
import {
  Controller,
  Get,
  Injectable,
  SetMetadata,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { APP_GUARD, Reflector } from '@nestjs/core';
import { MemoryStore } from 'nest-redis-lock/testing';
import { describe, expect, it } from 'vitest';
import { Locked, LOCKED_METADATA, type LockedMetadata } from 'nest-redis-lock';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { PLATFORMS, startHttp } from '../../support/nest/http.js';

const apps = useApps();

const reflector = new Reflector();
const read = (method: object): LockedMetadata | undefined =>
  reflector.get<LockedMetadata | undefined>(LOCKED_METADATA, method as () => void);

const keyOf = (id: string): string => `order:${id}`;

class Orders {
  @SetMetadata('above', 1)
  @Locked('order:<<id>>', { waitMs: 2_000, holdAtLeastMs: 5 })
  @SetMetadata('below', 2)
  async byTemplate(id: string): Promise<string> {
    return id;
  }

  @Locked(['order:<<id>>', 'all'])
  async bySeveral(id: string): Promise<string> {
    return id;
  }

  @Locked(keyOf)
  async byFunction(id: string): Promise<string> {
    return id;
  }

  @Locked('nightly-report', { onBusy: 'skip' })
  async skips(): Promise<void> {}

  async unlocked(): Promise<void> {}
}

class ChildOrders extends Orders {
  @Locked('child:<<id>>')
  override async byTemplate(id: string): Promise<string> {
    return super.byTemplate(id);
  }
}

describe('the metadata of a locked method', () => {
  it('has its key and its options', () => {
    const { byTemplate, bySeveral, byFunction, skips, unlocked } = Orders.prototype;
    expect(read(byTemplate)).toEqual({ key: 'order:<<id>>', options: { waitMs: 2_000, holdAtLeastMs: 5 } });
    expect(read(bySeveral)).toEqual({ key: ['order:<<id>>', 'all'], options: {} });
    expect(read(byFunction)).toEqual({ key: keyOf, options: {} });
    expect(read(skips)).toEqual({ key: 'nightly-report', options: { onBusy: 'skip' } });
    expect(read(unlocked)).toBeUndefined();
  });

  it('stands beside that of other decorators', () => {
    expect(reflector.get<number>('above', Orders.prototype.byTemplate)).toBe(1);
    expect(reflector.get<number>('below', Orders.prototype.byTemplate)).toBe(2);
  });

  it('is that of the class that declares the method, also in a subclass', () => {
    const child = new ChildOrders();
    expect(read(child.byTemplate)?.key).toBe('child:<<id>>');
    expect(read(child.bySeveral)?.key).toEqual(['order:<<id>>', 'all']);
    expect(read(Orders.prototype.byTemplate)?.key).toBe('order:<<id>>');
  });

  it('is frozen, and what was given can change without changing it', () => {
    const keys = ['a', 'b'];
    const options = { waitMs: 5 };
    class Given {
      @Locked(keys, options)
      async run(): Promise<void> {}
    }
    keys.push('c');
    options.waitMs = 6;
    const metadata = read(Given.prototype.run)!;
    expect(metadata).toEqual({ key: ['a', 'b'], options: { waitMs: 5 } });
    expect([metadata, metadata.key, metadata.options].every((part) => Object.isFrozen(part))).toBe(true);
  });
});

describe.each(PLATFORMS)('a guard on %s', (platform) => {
  it('reads the key and the options of the handler it stands before', async () => {
    const seen: unknown[] = [];

    @Injectable()
    class Guard implements CanActivate {
      constructor(private readonly metadata: Reflector) {}

      canActivate(context: ExecutionContext): boolean {
        seen.push(this.metadata.get<LockedMetadata>(LOCKED_METADATA, context.getHandler()));
        return true;
      }
    }

    class Base {
      @Get('pay')
      @Locked('order', { waitMs: 7 })
      async pay(): Promise<string> {
        return 'paid';
      }
    }

    @Controller()
    class OrdersController extends Base {}

    const http = await startHttp(
      apps,
      platform,
      rootModule(
        { store: new MemoryStore() },
        { controllers: [OrdersController], providers: [{ provide: APP_GUARD, useClass: Guard }] },
      ),
    );
    expect(await (await http.get('/pay')).text()).toBe('paid');
    expect(seen).toEqual([{ key: 'order', options: { waitMs: 7 } }]);
  });
});
