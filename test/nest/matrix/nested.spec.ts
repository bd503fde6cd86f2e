// A lock inside the same lock, in apps: which calls enter, which wait, and what a shared queue makes of them.
import {
  Controller,
  Get,
  Injectable,
  Param,
  Scope,
  UseInterceptors,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { from, lastValueFrom, type Observable } from 'rxjs';
import { beforeEach, describe, expect, it } from 'vitest';
import { currentLease, Locked, lockKey, LockService, type Lease } from 'nest-redis-lock';
import { deferred } from '../../support/async.js';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { createHttpApp, listen, PLATFORMS, type HttpClient, type Platform } from '../../support/nest/http.js';
import { RecordingLogger } from '../../support/nest/recording-logger.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();
let logger: RecordingLogger;
beforeEach(() => (logger = new RecordingLogger()));

@Injectable()
class Orders {
  constructor(private readonly locks: LockService) {}

  @Locked('order:<<id>>')
  async pay(id: string): Promise<number> {
    return currentLease(`order:${id}`).fencingToken;
  }

  /** A helper, which gets the lease as an argument. */
  async book(id: string, lease: Lease): Promise<number> {
    const key = lockKey('order:<<id>>', { id });
    return this.locks.withLock(key, { inside: lease }, (own) => own.fencingToken);
  }
}

@Injectable({ scope: Scope.REQUEST })
class RequestOrders extends Orders {}

/** Locks the order of the route around the handler. */
@Injectable()
class OrderInterceptor implements NestInterceptor {
  constructor(private readonly locks: LockService) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { params } = context.switchToHttp().getRequest<{ params: { id: string } }>();
    return from(this.locks.withLock(lockKey('order:<<id>>', params), () => lastValueFrom(next.handle())));
  }
}

@Controller()
class OrderController {
  constructor(
    private readonly orders: Orders,
    private readonly requestOrders: RequestOrders,
  ) {}

  @Get('proven/:id')
  @Locked('order:<<id>>')
  async proven(@Param('id') id: string): Promise<readonly number[]> {
    const lease = currentLease();
    return [
      lease.fencingToken,
      await lease.call(this.orders, this.orders.pay, id),
      await lease.call(this.requestOrders, this.requestOrders.pay, id),
      await this.orders.book(id, lease),
    ];
  }

  @Get('unproven/:id')
  @Locked('order:<<id>>')
  async unproven(@Param('id') id: string): Promise<number> {
    return this.orders.pay(id);
  }

  @Get('intercepted/:id')
  @UseInterceptors(OrderInterceptor)
  @Locked('order:<<id>>')
  async intercepted(@Param('id') id: string): Promise<string> {
    return id;
  }
}

/** Runs one task at a time, and starts the next one where the last one has ended, as many queues do. */
@Injectable()
class SharedQueue {
  private readonly tasks: (() => Promise<void>)[] = [];
  private isRunning = false;

  add<T>(task: () => Promise<T>): Promise<T> {
    const result = new Promise<T>((resolve, reject) => {
      this.tasks.push(() => task().then(resolve, reject));
    });
    if (!this.isRunning) void this.runNext();
    return result;
  }

  private async runNext(): Promise<void> {
    const task = this.tasks.shift();
    this.isRunning = task !== undefined;
    if (!task) return;
    await task();
    await this.runNext();
  }
}

/** One piece of tea, and a queue that all requests share. */
@Injectable()
class TeaShop {
  remaining = 1;
  sold = 0;
  readonly tokens: number[] = [];
  /** The first buyer has a task in the queue, and waits for the end of it. */
  readonly firstIsQueued = deferred();
  /** The task of the second buyer is behind it. */
  readonly secondIsQueued = deferred();
  /** The second buyer has asked for the lock. */
  readonly secondAsks = deferred();

  constructor(private readonly queue: SharedQueue) {}

  /** Buys in the request itself, and writes its mail in the queue. */
  @Locked('tea')
  async buyAndWrite(): Promise<boolean> {
    const isThere = this.begin();
    const mail = this.queue.add(() => this.secondIsQueued.promise);
    this.firstIsQueued.resolve();
    await mail;
    await this.secondAsks.promise;
    // If a call could enter by its context, it needs no server: it has run by now.
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    return this.end(isThere);
  }

  /** Buys as a task of the queue, which begins in the context of the task before it. */
  buyInQueue(): Promise<boolean> {
    const bought = this.queue.add(() => {
      const buying = this.buy();
      this.secondAsks.resolve();
      return buying;
    });
    this.secondIsQueued.resolve();
    return bought;
  }

  @Locked('tea')
  async buy(): Promise<boolean> {
    const isThere = this.begin();
    await nextTurn();
    return this.end(isThere);
  }

  private begin(): boolean {
    this.tokens.push(currentLease().fencingToken);
    return this.remaining > 0;
  }

  private end(isThere: boolean): boolean {
    if (!isThere) return false;
    this.remaining -= 1;
    this.sold += 1;
    return true;
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

@Controller('tea')
class TeaController {
  constructor(private readonly shop: TeaShop) {}

  @Get('first')
  first(): Promise<boolean> {
    return this.shop.buyAndWrite();
  }

  @Get('second')
  second(): Promise<boolean> {
    return this.shop.buyInQueue();
  }
}

const start = async (platform: Platform, waitMs: number): Promise<HttpClient> => {
  const module = rootModule(world.options({ waitMs }), {
    controllers: [OrderController, TeaController],
    providers: [Orders, RequestOrders, SharedQueue, TeaShop],
  });
  const app = await createHttpApp(apps, platform, module);
  app.useLogger(logger);
  return listen(app);
};

const warningsOfNesting = (): string[] => logger.warnings.filter((text) => text.includes('holds the key'));

const WAITED_FOR_ITSELF = /failed with LOCK_TAKEN: .*a section of "[^"]+" around this call holds the key/;

describe.each(PLATFORMS)('a lock inside the same lock, on %s', (platform) => {
  it('enters with a proof: a controller, its services and a helper share one grant', async () => {
    const http = await start(platform, 0);
    let grants = 0;
    http.app.get(LockService).on('acquired', () => grants++);
    const tokens = (await (await http.get('/proven/7')).json()) as number[];
    expect(tokens).toHaveLength(4);
    expect(new Set(tokens).size).toBe(1);
    expect(grants).toBe(1);
    expect(await world.holds()).toEqual([]);
    expect(warningsOfNesting()).toEqual([]);
    expect(logger.errors).toEqual([]);
  });

  it('waits without a proof: the client of the controller gets 423, and the log has each such error', async () => {
    const http = await start(platform, 0);
    for (const _ of [1, 2]) expect((await http.get('/unproven/7')).status).toBe(423);
    expect(logger.errors).toHaveLength(2);
    expect(logger.errors[0]).toMatch(WAITED_FOR_ITSELF);
    expect(logger.errors[0]).toContain('lease.call');
    expect(warningsOfNesting()).toHaveLength(1);
    expect(await world.holds()).toEqual([]);
  });

  it('waits when an interceptor holds it around the handler: lock in one of the two places', async () => {
    const http = await start(platform, 0);
    const answer = await http.get('/intercepted/7');
    expect([answer.status, await answer.json()]).toMatchObject([423, { code: 'LOCK_TAKEN' }]);
    expect(logger.errors).toEqual([expect.stringMatching(WAITED_FOR_ITSELF)]);
    expect(await world.holds()).toEqual([]);
  });

  it('waits when a shared queue starts it in the context of another request: one piece is sold once', async () => {
    const http = await start(platform, 10_000);
    const shop = http.app.get(TeaShop);
    const bought = async (path: string): Promise<boolean> => (await (await http.get(path)).text()) === 'true';
    const first = bought('/tea/first');
    await shop.firstIsQueued.promise;
    const second = bought('/tea/second');
    expect([await first, await second]).toEqual([true, false]);
    expect([shop.sold, shop.remaining]).toEqual([1, 0]);
    expect(shop.tokens).toHaveLength(2);
    expect(shop.tokens[1]).toBeGreaterThan(shop.tokens[0]!);
    expect(warningsOfNesting()).toEqual([
      expect.stringContaining('If it is a task of a queue, it waits in its turn'),
    ]);
  });
});
