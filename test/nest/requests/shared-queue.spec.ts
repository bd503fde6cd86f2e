// One queue for the whole app runs a task of one request in the asynchronous context of another request.
import { once } from 'node:events';
import { connect, type Server, type Socket } from 'node:net';
import {
  Controller,
  Get,
  Injectable,
  Param,
  UseInterceptors,
  type CallHandler,
  type NestInterceptor,
} from '@nestjs/common';
import { from, lastValueFrom, mergeMap, Observable, Subject } from 'rxjs';
import { beforeEach, describe, expect, it } from 'vitest';
import { Limited, Locked, LockService } from 'nest-redis-lock';
import { deferred, until, within, type Deferred } from '../../support/async.js';
import { LOOPBACK } from '../../support/loopback.js';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { PLATFORMS, startHttp, type HttpClient, type Platform } from '../../support/nest/http.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

/** Ends alice's task, and so starts bob's task in her context. Her request goes on until `answer`. */
let gate: Deferred<void>;
let answer: Deferred<void>;
let rows: Subject<string>;
let queue: TaskQueue;
beforeEach(() => {
  [gate, answer] = [deferred(), deferred()];
  [rows, queue] = [new Subject(), new TaskQueue()];
  world.takeRuns();
});

/** Runs one task at a time. The end of a task starts the next one, in its own context, as in p-queue and others. */
class TaskQueue {
  private readonly tasks: (() => Promise<void>)[] = [];
  isRunning = false;

  get size(): number {
    return this.tasks.length;
  }

  add<T>(task: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.tasks.push(() => task().then(resolve, reject));
      this.startNext();
    });
  }

  private startNext(): void {
    const task = this.isRunning ? undefined : this.tasks.shift();
    if (!task) return;
    this.isRunning = true;
    void task().finally(() => {
      this.isRunning = false;
      this.startNext();
    });
  }
}

@Injectable()
class Payments {
  @Locked('user:<<user>>', { waitMs: 60_000 })
  async pay(user: string): Promise<string> {
    return world.work(`user:${user}`);
  }

  @Locked('rows')
  rows(): Observable<string> {
    return rows;
  }
}

/** Runs the whole handler as a task of the queue. */
class Queued implements NestInterceptor {
  intercept(_context: unknown, next: CallHandler): Observable<unknown> {
    return from(queue.add(() => lastValueFrom(next.handle() as Observable<unknown>))).pipe(
      mergeMap((value: unknown) => (value === 'alice' ? answer.promise : [value])),
    );
  }
}

@Controller()
class PaymentController {
  constructor(private readonly payments: Payments) {}

  @Get('service/:user')
  async service(@Param('user') user: string): Promise<string | void> {
    if (user !== 'alice') return queue.add(() => this.payments.pay(user));
    await queue.add(() => gate.promise);
    return answer.promise;
  }

  @Get('rows/:user')
  async rows(@Param('user') user: string): Promise<string | void> {
    if (user !== 'alice') return queue.add(() => lastValueFrom(this.payments.rows()));
    await queue.add(() => gate.promise);
    return answer.promise;
  }

  @Get('queued/:user')
  @UseInterceptors(Queued)
  @Locked('user:<<user>>', { waitMs: 60_000 })
  async queued(@Param('user') user: string): Promise<string> {
    if (user === 'alice') return gate.promise.then(() => user);
    return world.work(`user:${user}`);
  }

  @Get('again/:user')
  @Locked('handler:<<user>>', { waitMs: 60_000 })
  async again(@Param('user') user: string): Promise<string | void> {
    if (user === 'bob of the queue') return world.work(`handler:${user}`);
    if (user !== 'alice') return queue.add(() => this.again('bob of the queue'));
    await queue.add(() => gate.promise);
    return answer.promise;
  }

  @Get('both/:user')
  @Limited('crm', { permits: 1 })
  @Locked('user:<<user>>', { waitMs: 60_000 })
  async both(@Param('user') user: string): Promise<string> {
    return world.work(`user:${user}`);
  }
}

const start = async (platform: Platform): Promise<{ http: HttpClient; locks: LockService }> => {
  const metadata = { controllers: [PaymentController], providers: [Payments] };
  const http = await startHttp(apps, platform, rootModule(world.options({ slowWaitMs: 1 }), metadata));
  return { http, locks: http.app.get(LockService) };
};

/** Sends a request whose connection the test can close. */
const send = async ({ port }: HttpClient, path: string): Promise<Socket> => {
  const socket = connect(port, LOOPBACK);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(`GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`);
  return socket;
};

const connections = (http: HttpClient): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = http.app.getHttpServer() as Server;
    server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });

/** Closes the connection of alice, while bob's is open. */
const leave = async (http: HttpClient, socket: Socket): Promise<void> => {
  const before = await connections(http);
  socket.destroy();
  await until(async () => (await connections(http)) < before, { what: 'the server sees that alice left' });
};

describe.each(PLATFORMS)("a task of bob's request that runs in the context of alice's, on %s", (platform) => {
  it.each([
    ['of a service', 'service', 'user:bob'],
    ['of a handler that an interceptor runs in the queue', 'queued', 'user:bob'],
    ['of a handler that the code calls', 'again', 'handler:bob of the queue'],
  ])('goes on waiting when alice disconnects: the lock %s', async (_what, path, key) => {
    const { http, locks } = await start(platform);
    const free = await world.takeElsewhere(key);
    const alice = await send(http, `/${path}/alice`);
    await until(() => queue.isRunning, { what: "alice's task runs" });
    const waiting = new Promise<string>((resolve) => locks.on('waiting', (event) => resolve(event.key)));
    const reply = http.get(`/${path}/bob`);
    await until(() => queue.size === 1, { what: "bob's task is in the queue" });
    gate.resolve();
    expect(await within(10_000, waiting, 'bob waits')).toBe(key);
    await leave(http, alice);
    await free();
    expect((await within(10_000, reply, "bob's reply")).status).toBe(200);
    expect(world.takeRuns()).toEqual([{ key, locked: true }]);
    answer.resolve();
  });

  it('reads a locked Observable to its end when alice disconnects', async () => {
    const { http, locks } = await start(platform);
    const alice = await send(http, '/rows/alice');
    await until(() => queue.isRunning, { what: "alice's task runs" });
    const reply = http.get('/rows/bob');
    await until(() => queue.size === 1, { what: "bob's task is in the queue" });
    gate.resolve();
    await until(() => rows.observed, { what: 'bob reads' });
    await leave(http, alice);
    expect(await locks.isLocked('rows')).toBe(true);
    rows.next('last row');
    rows.complete();
    expect(await (await within(10_000, reply, "bob's reply")).text()).toBe('last row');
    answer.resolve();
  });
});

describe.each(PLATFORMS)('the wait of a handler for its own lock, on %s', (platform) => {
  it('ends when its client disconnects, also below a second decorator', async () => {
    const { http, locks } = await start(platform);
    const free = await world.takeElsewhere('user:bob');
    const bob = await send(http, '/both/bob');
    await until(() => locks.usage.keys === 2, { what: 'bob has the permit, and waits for the lock' });
    bob.destroy();
    await until(() => Object.values(locks.usage).every((size) => size === 0), { what: 'nothing waits' });
    await free();
    expect(world.takeRuns()).toEqual([]);
  });
});
