import { once } from 'node:events';
import { connect, type Server, type Socket } from 'node:net';
import {
  Catch,
  Controller,
  Get,
  HttpException,
  Injectable,
  Param,
  UseFilters,
  UseGuards,
  type CanActivate,
  type ExceptionFilter,
} from '@nestjs/common';
import { beforeEach, describe, expect, it } from 'vitest';
import { LockService, Locked, type LockUsage } from 'nest-redis-lock';
import { deferred, until, within, type Deferred } from '../../support/async.js';
import { LOOPBACK } from '../../support/loopback.js';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { PLATFORMS, startHttp, type HttpClient } from '../../support/nest/http.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();
let body: Deferred<void>;
let guard: Deferred<void>;
let guarded: Deferred<void>;
let caught: Deferred<HttpException>;
beforeEach(() => {
  [body, guard, guarded] = [deferred(), deferred(), deferred()];
  caught = deferred<HttpException>();
  world.takeRuns();
});

@Injectable()
class SlowGuard implements CanActivate {
  async canActivate(): Promise<boolean> {
    guarded.resolve();
    await guard.promise;
    return true;
  }
}

/** No client is left for a response. */
@Catch(HttpException)
class Noting implements ExceptionFilter {
  catch(exception: HttpException): void {
    caught.resolve(exception);
  }
}

@Controller()
class OrderController {
  @Get('pay/:id')
  @Locked('order:<<id>>', { waitMs: 60_000 })
  async pay(@Param('id') id: string): Promise<string> {
    return world.work(`order:${id}`);
  }

  @Get('slow/:id')
  @Locked('order:<<id>>', { waitMs: 60_000 })
  async slow(@Param('id') id: string): Promise<string> {
    await body.promise;
    return world.work(`order:${id}`);
  }

  @Get('guarded/:id')
  @UseGuards(SlowGuard)
  @UseFilters(Noting)
  @Locked('order:<<id>>', { waitMs: 60_000 })
  async guarded(@Param('id') id: string): Promise<string> {
    return world.work(`order:${id}`);
  }
}

const NOTHING: LockUsage = { leases: 0, keys: 0, holds: 0, undoing: 0 };

/** A client that asks, and can go away without a word. */
const ask = async (http: HttpClient, path: string): Promise<Socket> => {
  const socket = connect(http.port, LOOPBACK);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(`GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`);
  return socket;
};

describe.each(PLATFORMS)('a client that goes away on %s', (platform) => {
  const start = async (): Promise<{ http: HttpClient; locks: LockService }> => {
    const metadata = { controllers: [OrderController], providers: [SlowGuard] };
    const http = await startHttp(apps, platform, rootModule(world.options(), metadata));
    return { http, locks: http.app.get(LockService) };
  };

  it('while it waits for a lock leaves nothing waiting, and the method never runs for it', async () => {
    const { http, locks } = await start();
    const free = await world.takeElsewhere('order:1');
    const socket = await ask(http, '/pay/1');
    await until(() => locks.usage.keys === 1, { what: 'the request waits' });
    socket.destroy();
    await until(() => Object.values(locks.usage).every((size) => size === 0), { what: 'nothing waits' });
    await free();
    expect(await locks.withLock('order:1', () => 'taken at once')).toBe('taken at once');
    expect(world.takeRuns()).toEqual([]);
    expect(await world.holds()).toEqual([]);
  });

  it('does not take its place in the queue along', async () => {
    const { http, locks } = await start();
    const free = await world.takeElsewhere('order:1');
    const [first, second] = [await ask(http, '/pay/1'), await ask(http, '/pay/1')];
    await until(() => locks.usage.leases === 2, { what: 'both requests wait' });
    first.destroy();
    await until(() => locks.usage.leases === 1, { what: 'the first has left' });
    await free();
    const [answer] = (await once(second, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /);
    expect(world.takeRuns()).toEqual([{ key: 'order:1', locked: true }]);
    second.destroy();
  });

  it('while the method runs does not cut it short, and the lock is given back after it', async () => {
    const { http, locks } = await start();
    const socket = await ask(http, '/slow/1');
    await until(() => locks.held().length === 1, { what: 'the method runs' });
    socket.destroy();
    await until(() => isDeserted(http), { what: 'the server sees that the client left' });
    expect(locks.held()).toHaveLength(1);
    body.resolve();
    await until(() => Object.values(locks.usage).every((size) => size === 0));
    expect(locks.usage).toEqual(NOTHING);
    expect(world.takeRuns()).toEqual([{ key: 'order:1', locked: true }]);
    expect(await world.holds()).toEqual([]);
  });

  it('before the handler is reached does not wait either', async () => {
    const { http, locks } = await start();
    const free = await world.takeElsewhere('order:1');
    const socket = await ask(http, '/guarded/1');
    await guarded.promise;
    socket.destroy();
    await until(() => isDeserted(http), { what: 'the server sees that the client left' });
    guard.resolve();
    const { cause } = await within(10_000, caught.promise, 'the call of the client that left');
    expect(cause).toMatchObject({ code: 'LOCK_ABORTED' });
    expect(locks.usage).toEqual(NOTHING);
    await free();
    expect(world.takeRuns()).toEqual([]);
  });
});

/** Whether the server has no connection any more. */
const isDeserted = (http: HttpClient): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const server = http.app.getHttpServer() as Server;
    server.getConnections((error, count) => (error ? reject(error) : resolve(count === 0)));
  });
