// Locked methods of each kind. The program prints what each of them gave its caller: a class is made when its case runs.
import 'reflect-metadata';
import { Injectable, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Limited, Locked, LockService } from 'nest-redis-lock';
import { RedisLockTestingModule } from 'nest-redis-lock/testing';
import { EMPTY, firstValueFrom, lastValueFrom, mergeMap, Observable, of, toArray } from 'rxjs';

interface Case {
  readonly type: Type;
  call(instance: never): unknown;
}

const PATIENCE_MS = 2_000;

/** What is held by the running case, as its methods see it. */
let held: () => string;

const all = async (rows: AsyncIterable<string>): Promise<string> => {
  const seen: string[] = [];
  for await (const row of rows) seen.push(row);
  return seen.join();
};

const named = (): Case => {
  @Injectable()
  class Orders {
    @Locked('order:<<orderId>>')
    async pay(amount: number, orderId: string) {
      return `${held()} ${amount}`;
    }
  }
  return { type: Orders, call: (orders: Orders) => orders.pay(1, 'a') };
};

const withDefault = (): Case => {
  @Injectable()
  class Orders {
    @Locked('order:<<orderId>>')
    async pay(orderId: string, amount = 1) {
      return `${held()} ${amount}`;
    }
  }
  return { type: Orders, call: (orders: Orders) => orders.pay('a') };
};

const readsArguments = (): Case => {
  @Injectable()
  class Orders {
    @Locked('order:<<orderId>>')
    async pay(orderId: string) {
      return `${held()} ${arguments.length}`;
    }
  }
  return { type: Orders, call: (orders: Orders) => orders.pay('a') };
};

const path = (): Case => {
  @Injectable()
  class Orders {
    @Locked('order:<<order.id>>')
    async pay({ amount }: { amount: number }, order: { id: string }) {
      return `${held()} ${amount}`;
    }
  }
  return { type: Orders, call: (orders: Orders) => orders.pay({ amount: 1 }, { id: 'a' }) };
};

const index = (): Case => {
  @Injectable()
  class Orders {
    @Locked('order:<<0>>')
    async pay(_orderId: string, amount = 1) {
      return `${held()} ${amount}`;
    }
  }
  return { type: Orders, call: (orders: Orders) => orders.pay('a') };
};

const keyFunction = (): Case => {
  @Injectable()
  class Orders {
    @Locked((orderId: string) => `order:${orderId}`)
    async pay(_orderId: string) {
      return `${held()} 1`;
    }
  }
  return { type: Orders, call: (orders: Orders) => orders.pay('a') };
};

const promise = (): Case => {
  @Injectable()
  class Orders {
    @Locked('order:<<0>>')
    pay(_orderId: string): Promise<string> {
      return Promise.resolve(`${held()} 1`);
    }
  }
  return { type: Orders, call: (orders: Orders) => orders.pay('a') };
};

const generator = (): Case => {
  @Injectable()
  class Orders {
    @Locked('order:<<0>>')
    async *rows(_orderId: string): AsyncGenerator<string> {
      yield `${held()} 1`;
    }
  }
  return { type: Orders, call: (orders: Orders) => all(orders.rows('a')) };
};

const limitedGenerator = (): Case => {
  @Injectable()
  class Orders {
    @Limited('order:<<0>>', { permits: 1 })
    async *rows(_orderId: string): AsyncGenerator<string> {
      yield `${held()} 1`;
    }
  }
  return { type: Orders, call: (orders: Orders) => all(orders.rows('a')) };
};

const iterable = (): Case => {
  @Injectable()
  class Orders {
    @Locked('order:<<0>>')
    rows(orderId: string): AsyncIterable<string> {
      return this.read(orderId);
    }

    private async *read(_orderId: string): AsyncGenerator<string> {
      yield `${held()} 1`;
    }
  }
  return { type: Orders, call: (orders: Orders) => all(orders.rows('a')) };
};

interface Watched {
  watch(orderId: string): Observable<string>;
}

const observable = (call: (orders: Watched) => unknown) => (): Case => {
  @Injectable()
  class Orders implements Watched {
    @Locked('order:<<0>>')
    watch(_orderId: string): Observable<string> {
      return new Observable((reader) => {
        reader.next(`${held()} 1`);
        reader.complete();
      });
    }
  }
  return { type: Orders, call };
};

const limitedObservable = (): Case => {
  @Injectable()
  class Orders implements Watched {
    @Limited('order:<<0>>', { permits: 1 })
    watch(_orderId: string): Observable<string> {
      return of(1).pipe(mergeMap(async (amount) => `${held()} ${amount}`));
    }
  }
  return { type: Orders, call: (orders: Orders) => firstValueFrom(orders.watch('a')) };
};

const CASES: Readonly<Record<string, () => Case>> = {
  ...{ named, withDefault, readsArguments, path, index, keyFunction, promise },
  ...{ generator, limitedGenerator, iterable, limitedObservable },
  subscribed: observable(
    (orders) => new Promise((next, error) => void orders.watch('a').subscribe({ next, error })),
  ),
  piped: observable(async (orders) => (await firstValueFrom(orders.watch('a').pipe(toArray()))).join()),
  flattened: observable((orders) => lastValueFrom(of('a').pipe(mergeMap((id) => orders.watch(id))))),
  awaited: observable(async (orders) => firstValueFrom(await orders.watch('a'))),
  unread: observable((orders) => void orders.watch('a')),
  pipedAndUnread: observable((orders) =>
    lastValueFrom(EMPTY, { defaultValue: void orders.watch('a').pipe(toArray()) }),
  ),
};

const before = <T>(result: T, what: string): Promise<Awaited<T>> =>
  Promise.race([
    result,
    new Promise<never>((_, reject) => setTimeout(() => reject(new Error(what)), PATIENCE_MS).unref()),
  ]) as Promise<Awaited<T>>;

const nothingHeld = async (locks: LockService): Promise<void> => {
  const end = performance.now() + PATIENCE_MS;
  while (locks.usage.leases > 0) {
    if (performance.now() > end) throw new Error(`still held: ${held()}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

const run = async (make: () => Case): Promise<unknown> => {
  const { type, call } = make();
  class App {}
  Module({ imports: [RedisLockTestingModule.forRoot()], providers: [type] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
  const locks = app.get(LockService);
  held = () =>
    locks
      .held()
      .map(({ key }) => key)
      .join();
  const result = await before(call(app.get(type) as never), 'no result').catch(String);
  await nothingHeld(locks);
  await app.close();
  return result;
};

const main = async (): Promise<void> => {
  const report: Record<string, unknown> = {};
  for (const [name, make] of Object.entries(CASES)) {
    report[name] = (await run(make).catch(String)) ?? 'nothing';
  }
  console.log(JSON.stringify(report));
};

void main();
