import { measured, sdk, spans } from './instrumentation.js';
import 'reflect-metadata';
import { setTimeout } from 'node:timers/promises';
import { context, trace } from '@opentelemetry/api';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockModule, Locked, LockService } from 'nest-redis-lock';
import { MemoryStore } from 'nest-redis-lock/testing';

const tracer = trace.getTracer('shop');

const query = async (): Promise<void> => {
  const span = tracer.startSpan('query');
  await setTimeout(2);
  span.end();
};

@Injectable()
class Orders {
  constructor(private readonly locks: LockService) {}

  @Locked('order:<<id>>')
  async pay(id: string): Promise<void> {
    await query();
    await this.locks.withLock(`stock:${id}`, { label: 'stock' }, query);
  }

  @Locked('order:<<id>>', { waitMs: 0, onBusy: 'skip', label: 'try' })
  async tryToPay(id: string): Promise<string | undefined> {
    return id;
  }
}

@Module({ imports: [LockModule.forRoot({ store: new MemoryStore() })], providers: [Orders] })
class Shop {}

const tree = (parent?: string): unknown[] =>
  spans
    .filter(({ parentSpanContext }) => parentSpanContext?.spanId === parent)
    .sort((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1])
    .map((span) => {
      const children = tree(span.spanContext().spanId);
      const outcome = span.attributes['redis_lock.outcome'];
      const name = outcome === undefined ? span.name : `${span.name} ${String(outcome)} ${span.status.code}`;
      return children.length === 0 ? name : [name, ...children];
    });

const request = (name: string, work: () => Promise<unknown>): Promise<void> =>
  tracer.startActiveSpan(name, async (span) => {
    await work();
    if (trace.getSpan(context.active()) !== span) throw new Error(`${name} has another span after its work`);
    span.end();
  });

const main = async (): Promise<void> => {
  const app = await NestFactory.createApplicationContext(Shop, { logger: false });
  const [orders, locks] = [app.get(Orders), app.get(LockService)];
  await request('pays', () => orders.pay('7'));
  const lease = await locks.acquire('order:8');
  await request('finds it taken', () => orders.tryToPay('8'));
  await lease.release();
  await request('loses it', () => locks.withLock('lost', () => locks.forceUnlock('lost')));
  await app.close();
  const metrics = await measured();
  const traces = tree();
  await sdk.shutdown();
  console.log(JSON.stringify({ node: process.versions.node, traces, metrics }));
};

void main();
