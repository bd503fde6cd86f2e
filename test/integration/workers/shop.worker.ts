import 'reflect-metadata';
import type { AddressInfo } from 'node:net';
import type { Server } from 'node:http';
import { Controller, Get, Module, Param } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { currentLease, Locked, RedisLockModule } from 'nest-redis-lock';
import { deferred } from '../../support/async.js';
import { workerChannel } from '../../support/worker-channel.js';

/** A Nest app on HTTP whose handlers work until the test says that they are done. Its only argument is the Redis URL. */
export type ToShop = { readonly type: 'finish work' };
export type FromShop =
  | { readonly type: 'listening'; readonly url: string }
  | { readonly type: 'working'; readonly id: string }
  | { readonly type: 'worked'; readonly id: string; readonly lost: boolean };

const work = deferred();
const channel = workerChannel<ToShop, FromShop>();
channel.on('finish work', () => work.resolve());

@Controller('orders')
class OrdersController {
  @Get(':id')
  @Locked('order:<<id>>')
  async place(@Param('id') id: string): Promise<string> {
    channel.send({ type: 'working', id });
    await work.promise;
    channel.send({ type: 'worked', id, lost: currentLease().signal.aborted });
    return `order ${id} placed`;
  }
}

@Module({
  imports: [RedisLockModule.forRoot({ redis: process.argv[2]!, waitMs: 20_000 })],
  controllers: [OrdersController],
})
class ShopModule {}

const app = await NestFactory.create(ShopModule, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');
const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
channel.send({ type: 'listening', url: `http://127.0.0.1:${port}` });
