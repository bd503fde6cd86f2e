import 'reflect-metadata';
import { createServer, type ServerResponse } from 'node:http';
import { Module, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockService, RedisLockModule } from 'nest-redis-lock';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHARGES, MAX_CHARGES_AT_ONCE, PaymentClient } from '../../sample-app/src/payment/payment.client.js';
import { PaymentModule } from '../../sample-app/src/payment/payment.module.js';
import { listenOnFreePort, LOOPBACK } from '../support/loopback.js';
import { RedisServer } from '../support/servers/redis-server.js';

const INSTANCES = 3;
const CUSTOMERS = 10 * MAX_CHARGES_AT_ONCE;

describe('the payments of the flash sale', () => {
  let redis: RedisServer;
  const instances: INestApplicationContext[] = [];
  /** A bank that answers when as many charges are at work as it takes. */
  const atWork: ServerResponse[] = [];
  let [max, charged] = [0, 0];
  const bank = createServer((request, response) => {
    request.resume();
    max = Math.max(max, atWork.push(response));
    if (atWork.length < MAX_CHARGES_AT_ONCE) return;
    for (const answer of atWork.splice(0)) {
      charged += 1;
      answer.writeHead(201).end();
    }
  });

  beforeAll(async () => {
    redis = await RedisServer.start();
    const port = await listenOnFreePort(bank);
    const payments = PaymentModule.forRoot(`http://${LOOPBACK}:${port}`);
    for (let i = 0; i < INSTANCES; i += 1) {
      @Module({ imports: [RedisLockModule.forRoot({ redis: redis.url, waitMs: 30_000 }), payments] })
      class Shop {}
      instances.push(await NestFactory.createApplicationContext(Shop, { logger: false }));
    }
  });

  afterAll(async () => {
    for (const one of instances) await one.close();
    bank.close();
    bank.closeAllConnections();
    await redis.stop();
  });

  it('are as many at a time as the payment service takes, over all instances, and all are made', async () => {
    await Promise.all(
      Array.from({ length: CUSTOMERS }, (_, i) =>
        instances[i % INSTANCES]!.get(PaymentClient).charge({ sku: `sku-${i}`, userId: `customer-${i}` }),
      ),
    );
    expect({ max, charged }).toEqual({ max: MAX_CHARGES_AT_ONCE, charged: CUSTOMERS });
    expect(await instances[0]!.get(LockService).inspect(CHARGES)).toBeNull();
  });
});
