import 'reflect-metadata';
import { Module, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { detached } from 'nest-redis-lock';
import { InProcessServer } from './in-process.server';
import { RefundController } from './refund.controller';
import { exercise, redisUrl } from './shared/exercise';
import { OrderService, ShopModule } from './shared/shop';

@Module({ imports: [ShopModule.on(redisUrl())], controllers: [RefundController] })
class AppModule {}

/** The same lock through messages: with it free, and while somebody else has it. */
const overMessages = async (
  app: INestApplication,
  server: InProcessServer,
): Promise<{ served: unknown; refused: unknown }> => {
  // Detached, as a message from another process is: a nested call would be let in.
  const ask = () => detached(() => server.ask('refund', { userId: 'ada' })).catch((error: unknown) => error);
  return { served: await ask(), refused: await app.get(OrderService).whileHeld('ada', ask) };
};

async function main(): Promise<void> {
  const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
  const server = new InProcessServer();
  app.connectMicroservice({ strategy: server }, { inheritAppConfig: true });
  await app.startAllMicroservices();
  const messages = await overMessages(app, server);
  console.log(JSON.stringify({ ...(await exercise(app)), messages }));
}

void main();
