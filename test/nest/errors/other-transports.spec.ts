import {
  Catch,
  Controller,
  UseFilters,
  UseGuards,
  type ArgumentsHost,
  type ExceptionFilter,
} from '@nestjs/common';
import {
  BaseRpcExceptionFilter,
  MessagePattern,
  Payload,
  RpcException,
  Transport,
} from '@nestjs/microservices';
import { APP_FILTER } from '@nestjs/core';
import type { Observable } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { LockNotAcquiredError, LockStoreError, Locked, type RedisLockModuleOptions } from 'nest-redis-lock';
import { freePort, LOOPBACK } from '../../support/loopback.js';
import { RedisServer } from '../../support/servers/redis-server.js';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { createHttpApp } from '../../support/nest/http.js';
import { QuotaGuard } from '../../support/nest/quota-guard.js';
import { connectTcp, startTcp } from '../../support/nest/tcp.js';
import { useWorld } from '../../support/nest/world.js';
import { RedisStore } from 'nest-redis-lock/redis';

const world = useWorld();
const apps = useApps();
const thrown: unknown[] = [];
afterEach(() => {
  thrown.length = 0;
});

@Catch()
class Watching extends BaseRpcExceptionFilter implements ExceptionFilter {
  override catch(exception: unknown, host: ArgumentsHost): Observable<unknown> {
    thrown.push(exception);
    return super.catch(exception, host);
  }
}

const own = new RpcException({ reason: 'sold out' });

@Controller()
@UseFilters(Watching)
class OrdersController {
  @MessagePattern('pay')
  @Locked('order:<<id>>')
  async pay(@Payload('id') id?: string): Promise<string> {
    return world.work(`order:${id}`);
  }

  @MessagePattern('fail')
  @Locked('fail')
  async fail(): Promise<string> {
    throw own;
  }
}

@Controller()
class GuardedController {
  @MessagePattern('guarded')
  @UseGuards(QuotaGuard)
  guarded(): string {
    return 'done';
  }
}

const moduleWith = (options: Partial<RedisLockModuleOptions> = {}) =>
  rootModule(world.options(options), {
    controllers: [OrdersController, GuardedController],
    providers: [QuotaGuard],
  });

describe('lock errors of message handlers', () => {
  it('answer with code and status, without the key, when the lock is taken', async () => {
    const client = await startTcp(apps, moduleWith());
    const free = await world.takeElsewhere('order:alice');
    await expect(client.send('pay', { id: 'alice' })).rejects.toEqual({
      status: 423,
      code: 'LOCK_TAKEN',
      message: 'The resource is busy. Try again shortly.',
    });
    await free();
    expect(thrown).toEqual([expect.any(RpcException)]);
    expect((thrown[0] as RpcException).cause).toBeInstanceOf(LockNotAcquiredError);
  });

  it('answer 503 when Redis is down, and 500 for a bad key', async () => {
    await using server = await RedisServer.start();
    const store = new RedisStore({ redis: server.url, commandTimeoutMs: 500 });
    const client = await startTcp(apps, moduleWith({ redis: undefined, store }));
    await expect(client.send('pay', {})).rejects.toMatchObject({ status: 500, code: 'LOCK_KEY_INVALID' });
    await server.kill('SIGKILL');
    await expect(client.send('pay', { id: '1' })).rejects.toMatchObject({
      status: 503,
      code: 'LOCK_STORE_FAILED',
    });
    expect((thrown[1] as RpcException).cause).toBeInstanceOf(LockStoreError);
  });

  it('stay as they are with interceptor: false', async () => {
    const client = await startTcp(apps, moduleWith({ interceptor: false }));
    const free = await world.takeElsewhere('order:alice');
    await expect(client.send('pay', { id: 'alice' })).rejects.toEqual({
      status: 'error',
      message: 'Internal server error',
    });
    await free();
    expect(thrown).toEqual([expect.any(LockNotAcquiredError)]);
  });

  it('answer with code and status when a guard throws them, unless interceptor is false', async () => {
    const [mapped, bare] = [
      await startTcp(apps, moduleWith()),
      await startTcp(apps, moduleWith({ interceptor: false })),
    ];
    const free = await world.takeElsewhere('quota:bob');
    await expect(mapped.send('guarded', {})).rejects.toEqual({
      status: 423,
      code: 'LOCK_TAKEN',
      message: 'The resource is busy. Try again shortly.',
    });
    await expect(bare.send('guarded', {})).rejects.toEqual({
      status: 'error',
      message: 'Internal server error',
    });
    await free();
    await expect(mapped.send('guarded', {})).resolves.toBe('done');
  });

  it('reach a global filter as RpcException when a guard throws them', async () => {
    const module = moduleWith();
    const filter = { provide: APP_FILTER, useClass: Watching };
    const client = await startTcp(apps, { ...module, providers: [...(module.providers ?? []), filter] });
    const free = await world.takeElsewhere('quota:bob');
    await expect(client.send('guarded', {})).rejects.toMatchObject({ status: 423, code: 'LOCK_TAKEN' });
    await free();
    expect(thrown).toEqual([expect.any(RpcException)]);
  });

  it('do not touch errors of the method', async () => {
    const client = await startTcp(apps, moduleWith());
    await expect(client.send('fail', {})).rejects.toEqual({ reason: 'sold out' });
    expect(thrown[0]).toBe(own);
  });

  it('are mapped in a hybrid app that shares its configuration', async () => {
    const app = await createHttpApp(apps, 'express', moduleWith());
    const port = await freePort();
    app.connectMicroservice(
      { transport: Transport.TCP, options: { host: LOOPBACK, port } },
      { inheritAppConfig: true },
    );
    await app.startAllMicroservices();
    const client = connectTcp(apps, port);
    const free = await world.takeElsewhere('order:1');
    await expect(client.send('pay', { id: '1' })).rejects.toMatchObject({ status: 423, code: 'LOCK_TAKEN' });
    await free();
    await expect(client.send('pay', { id: '1' })).resolves.toBe('done');
    const freeQuota = await world.takeElsewhere('quota:bob');
    await expect(client.send('guarded', {})).rejects.toMatchObject({ status: 423, code: 'LOCK_TAKEN' });
    await freeQuota();
  });
});
