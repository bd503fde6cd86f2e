import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { LockHealthIndicator, LockModule } from 'nest-redis-lock';
import { StoreFailure } from 'nest-redis-lock/store';
import { MemoryStore } from 'nest-redis-lock/testing';

@Controller('health')
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly locks: LockHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  check() {
    return this.health.check([() => this.locks.check()]);
  }

  @Get('throwing')
  @HealthCheck()
  checkOrThrow() {
    return this.health.check([() => this.locks.checkOrThrow('redis')]);
  }
}

const store = new MemoryStore();

@Module({ imports: [TerminusModule, LockModule.forRoot({ store })], controllers: [HealthController] })
class AppModule {}

const main = async (): Promise<void> => {
  const app = await NestFactory.create(AppModule, { logger: false });
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const replies: Record<string, { status: number; body: unknown }> = {};
  const ask = async (name: string, path: string): Promise<void> => {
    const response = await fetch(`${url}/${path}`);
    replies[name] = { status: response.status, body: await response.json() };
  };
  await ask('up', 'health');
  await ask('upThrowing', 'health/throwing');
  store.ping = () => Promise.reject(new StoreFailure('no reply from 10.0.0.7', 'not-executed'));
  await ask('down', 'health');
  await ask('downThrowing', 'health/throwing');
  await app.close();
  console.log(JSON.stringify(replies));
};

void main();
