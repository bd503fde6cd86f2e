import { Injectable, type Type } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { LockService, Locked } from 'nest-redis-lock';
import { Apps, rootModule } from '../support/apps.js';
import { World } from '../support/world.js';

let world: World;
const apps = new Apps();
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());
afterEach(() => apps.close());

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

  it('shares one hold with an override that is locked on the same key and calls it', async () => {
    const inside: { redis: string[]; held: number }[] = [];
    @Injectable()
    class Child extends Base {
      constructor(readonly locks: LockService) {
        super();
      }

      @Locked('order:<<id>>')
      override async pay(id: string): Promise<string> {
        const result = await super.pay(id);
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

  it('names the class that declares it in a lock without a key', async () => {
    class Job {
      @Locked()
      async run(): Promise<string> {
        return world.work('Job.run');
      }
    }
    @Injectable()
    class NightlyJob extends Job {}
    const { instance } = await make(NightlyJob);
    await world.expectLocked('Job.run', () => instance.run());
  });
});
