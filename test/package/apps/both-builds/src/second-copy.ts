// The module of one copy of the library, and classes that use another copy, `second-copy`.
import { Injectable, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RedisLockTestingModule } from 'nest-redis-lock/testing';
import { Locked, LockService } from 'second-copy';
import { failureOf } from './libraries.js';

@Injectable()
class Injected {
  constructor(readonly locks: LockService) {}
}

@Injectable()
class Decorated {
  @Locked('order:<<id>>')
  async pay(id: string): Promise<string> {
    return id;
  }
}

/** The first line of what keeps an app with this provider from starting. */
const startWith = async (provider: Type): Promise<string> => {
  class App {}
  Module({ imports: [RedisLockTestingModule.forRoot()], providers: [provider] })(App);
  const start = () => NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
  return String(await failureOf(start)).split('\n')[0]!;
};

console.log(JSON.stringify({ injected: await startWith(Injected), decorated: await startWith(Decorated) }));
