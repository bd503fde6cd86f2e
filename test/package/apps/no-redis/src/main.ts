import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockModule, Locked, LockService } from 'nest-redis-lock';
import { MemoryStore } from 'nest-redis-lock/testing';

@Injectable()
class Orders {
  constructor(private readonly locks: LockService) {}

  @Locked('order:<<id>>')
  async pay(id: string): Promise<boolean> {
    return this.locks.isLocked(`order:${id}`);
  }
}

@Module({ imports: [LockModule.forRoot({ store: new MemoryStore() })], providers: [Orders] })
class Shop {}

@Module({ imports: [LockModule.forRoot({ redis: 'redis://127.0.0.1:1' })] })
class OnRedis {}

const app = await NestFactory.createApplicationContext(Shop, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
const wasLocked = await app.get(Orders).pay('7');
await app.close();
const refusal: unknown = await NestFactory.createApplicationContext(OnRedis, {
  logger: false,
  abortOnError: false,
}).catch((error: unknown) => error);
console.log(JSON.stringify({ wasLocked, refusal: refusal instanceof Error ? refusal.message : 'none' }));
