// A key function is checked against the parameters of the method.
import type { Type } from '@nestjs/common';
import { Limited, Locked } from 'nest-redis-lock';

interface Order {
  readonly id: string;
  readonly total: number;
}

export class Accepted {
  @Locked((from: string, to: string) => [`account:${from}`, `account:${to}`])
  async same(from: string, to: string): Promise<string> {
    return from + to;
  }

  @Locked((from: string) => `account:${from}`)
  async prefix(from: string, to: string): Promise<string> {
    return from + to;
  }

  @Locked(() => 'account')
  async none(from: string): Promise<string> {
    return from;
  }

  @Locked((order: { readonly id: string }) => order.id)
  async wider(order: Order): Promise<string> {
    return order.id;
  }

  @Locked((entity: { id: string }) => entity.id)
  async generic<T extends { id: string }>(entity: T): Promise<T> {
    return entity;
  }

  @Locked((id: string) => id)
  private async hidden(id: string): Promise<string> {
    return id;
  }

  @Locked((id: string) => id)
  protected async guarded(id: string): Promise<string> {
    return this.hidden(id);
  }

  @Locked((id: string, note?: string) => `${id}:${note ?? ''}`)
  async optional(id: string, note?: string): Promise<string> {
    return `${id}${note}`;
  }

  @Locked((...ids: string[]) => ids)
  async rest(...ids: string[]): Promise<readonly string[]> {
    return ids;
  }

  @Locked((id: string): readonly [string, string] => [id, `${id}:2`] as const)
  async tuple(id: string): Promise<string> {
    return id;
  }

  async overloaded(id: string): Promise<string>;
  async overloaded(id: number): Promise<number>;
  @Locked((id: string | number) => `order:${id}`)
  async overloaded(id: string | number): Promise<string | number> {
    return id;
  }

  @Locked((from: string, to: string) => [{ key: from, mode: 'read' }, to])
  async modes(from: string, to: string): Promise<string> {
    return from + to;
  }

  @Locked([{ key: 'from:<<from>>', mode: 'read' }, 'log'])
  async modeOfTemplate(from: string): Promise<string> {
    return from;
  }

  @Locked<Accepted['explicit']>((userId, order) => `${userId.toUpperCase()}:${order.total.toFixed()}`)
  async explicit(userId: string, order: Order): Promise<string> {
    return userId + order.id;
  }

  @Locked<Accepted['explicitPrefix']>((userId) => userId.toUpperCase(), { waitMs: 5 })
  async explicitPrefix(userId: string, order: Order): Promise<string> {
    return userId + order.id;
  }
}

export abstract class BaseJob {
  abstract readonly name: string;
  protected abstract readonly tenant: string;

  @Locked(function (this: BaseJob) {
    return `job:${this.name}`;
  })
  async run(): Promise<void> {}

  @Locked(function () {
    return [`job:${this.name}`, { key: this.tenant, mode: 'read' }];
  })
  async inferred(): Promise<void> {}

  @Locked(
    function (this: BaseJob, id: string) {
      return `job:${this.tenant}:${id}`;
    },
    { onBusy: 'skip' },
  )
  async skips(id: string): Promise<string | undefined> {
    return id;
  }

  @Limited(
    function (this: { readonly name: string }, id: string) {
      return `${this.name}:${id}`;
    },
    { permits: 3 },
  )
  async limited(id: string): Promise<string> {
    return id;
  }
}

export class Job extends BaseJob {
  readonly name = 'job';
  protected readonly tenant = 'acme';

  @Locked(function (this: BaseJob) {
    return this.name;
  })
  async wider(): Promise<void> {}
}

export const Synced = <Class extends Type<{ readonly table: string }>>(Base: Class) => {
  class Mixed extends Base {
    @Locked(function (this: Mixed) {
      return `sync:${this.table}`;
    })
    async sync(): Promise<void> {}
  }
  return Mixed;
};

export class WithoutKey {
  // @ts-expect-error Expected 1-3 arguments, but got 0
  @Locked()
  async nothing(): Promise<void> {}

  // @ts-expect-error No overload matches this call
  @Locked(undefined)
  async undefinedKey(): Promise<void> {}

  // @ts-expect-error No overload matches this call
  @Locked(undefined, { waitMs: 5 })
  async undefinedAndOptions(): Promise<void> {}

  // @ts-expect-error No overload matches this call
  @Locked({ waitMs: 5 })
  async options(): Promise<void> {}

  // @ts-expect-error No overload matches this call
  @Locked({ onBusy: 'skip', holdAtLeastMs: 30_000 })
  async job(): Promise<void> {}

  // @ts-expect-error Expected 1-3 arguments, but got 0
  @Limited()
  async limited(): Promise<void> {}

  // @ts-expect-error No overload matches this call
  @Limited({ permits: 3 })
  async limitedOptions(): Promise<void> {}
}

export class OtherThis {
  readonly id = 'other';

  // @ts-expect-error is not assignable to
  @Locked(function (this: BaseJob) {
    return this.name;
  })
  async otherClass(): Promise<void> {}

  // @ts-expect-error is not assignable to
  @Limited(function (this: BaseJob) {
    return this.name;
  })
  async otherClassLimited(): Promise<void> {}

  @Locked(function () {
    // @ts-expect-error Property 'nope' does not exist on type 'OtherThis'
    return `job:${this.nope}`;
  })
  async inferred(): Promise<void> {}

  // @ts-expect-error The 'this' types of each signature are incompatible
  @Locked<OtherThis['withParameters']>(function (this: BaseJob, id) {
    return `${this.name}:${id}`;
  })
  async withParameters(id: string): Promise<string> {
    return id;
  }
}

export class Refused {
  // @ts-expect-error No overload matches this call
  @Locked([{ key: 'a', mode: 'append' }])
  async wrongMode(): Promise<void> {}

  // @ts-expect-error No overload matches this call
  @Locked([{ mode: 'read' }])
  async noKey(): Promise<void> {}

  // @ts-expect-error the key function’s parameters do not match the method’s
  @Locked((id: number) => `order:${id}`)
  async otherType(id: string): Promise<string> {
    return id;
  }

  // @ts-expect-error the key function’s parameters do not match the method’s
  @Locked((id: string, more: string) => id + more)
  async tooMany(id: string): Promise<string> {
    return id;
  }

  // @ts-expect-error the key function’s parameters do not match the method’s
  @Locked((order: Order) => order.id)
  async tooMuchAsked(order: { id: string }): Promise<string> {
    return order.id;
  }

  // @ts-expect-error the key function’s parameters do not match the method’s
  @Locked((id: string, note: string) => id + note)
  async optionalAsRequired(id: string, note?: string): Promise<string> {
    return `${id}${note}`;
  }

  // @ts-expect-error the key function’s parameters do not match the method’s
  @Locked((id: string) => id)
  private async hidden(id: number): Promise<number> {
    return id;
  }

  // @ts-expect-error the key function’s parameters do not match the method’s
  @Locked((entity: { id: string }) => entity.id)
  async generic<T extends { id: number }>(entity: T): Promise<T> {
    return entity;
  }

  // @ts-expect-error 'order' is of type 'unknown'
  @Locked((order) => order.id)
  async untyped(order: Order): Promise<string> {
    return order.id;
  }

  // @ts-expect-error is not assignable to parameter of type 'KeyResult'
  @Locked((id: number) => id)
  async noText(id: number): Promise<number> {
    return id;
  }

  // @ts-expect-error Property 'nope' does not exist on type 'Order'
  @Locked<Refused['explicit']>((_userId, order) => order.nope)
  async explicit(userId: string, order: Order): Promise<string> {
    return userId + order.id + (await this.hidden(1));
  }

  // @ts-expect-error the key function’s parameters do not match the method’s
  @Locked<Refused['explicit']>((userId) => userId)
  async otherMethod(id: number): Promise<number> {
    return id;
  }
}
