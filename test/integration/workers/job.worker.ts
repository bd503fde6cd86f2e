import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Locked, LockService, RedisLockModule, type LockUsage } from 'nest-redis-lock';
import { workerChannel } from '../../support/worker-channel.js';

/** A replica with a scheduled job. */
export interface JobSetup {
  readonly redis: string;
  readonly watchdogMs?: number;
}

export type ToJob =
  | { readonly type: 'trigger' }
  | { readonly type: 'trigger short' }
  | { readonly type: 'trigger hourly'; readonly how: 'succeed' | 'fail' | 'hang' };
export type FromJob =
  | { readonly type: 'ready' }
  | { readonly type: 'begins' }
  | { readonly type: 'ran'; readonly result: string | undefined; readonly usage: LockUsage };

const { redis, watchdogMs } = JSON.parse(process.argv[2]!) as JobSetup;

@Injectable()
class Report {
  @Locked('report', { onBusy: 'skip', holdAtLeastMs: 30_000 })
  async daily(): Promise<string | undefined> {
    await sleep(20);
    return 'sent';
  }

  @Locked('digest', { onBusy: 'skip', holdAtLeastMs: 1_500 })
  async digest(): Promise<string | undefined> {
    await sleep(20);
    return 'sent';
  }
}

type How = Extract<ToJob, { type: 'trigger hourly' }>['how'];

@Injectable()
class Hourly {
  @Locked('hourly', { onBusy: 'skip', oncePerMs: 3_600_000 })
  async run(how: How): Promise<string | undefined> {
    channel.send({ type: 'begins' });
    if (how === 'hang') await new Promise(() => undefined);
    if (how === 'fail') throw new Error('no paper');
    return 'sent';
  }
}

@Module({ imports: [RedisLockModule.forRoot({ redis, watchdogMs })], providers: [Report, Hourly] })
class JobModule {}

const app = await NestFactory.createApplicationContext(JobModule, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
const channel = workerChannel<ToJob, FromJob>(() => app.close());
const report = app.get(Report);
const locks = app.get<LockService>(LockService);

const run = async (job: () => Promise<string | undefined>) => {
  const result = await job();
  channel.send({ type: 'ran', result, usage: locks.usage });
};
channel.on('trigger', () => run(() => report.daily()));
channel.on('trigger short', () => run(() => report.digest()));
const hourly = app.get(Hourly);
channel.on('trigger hourly', ({ how }) => run(() => hourly.run(how).catch((error: Error) => error.message)));
await locks.ping();
channel.send({ type: 'ready' });
