import 'reflect-metadata';
import { setTimeout as wait } from 'node:timers/promises';
import { Module, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { detached, LockService } from 'nest-redis-lock';
import { FeedController } from './feed.controller';
import { InProcessServer } from './in-process.server';
import { RefundController } from './refund.controller';
import { exercise, redisUrl } from './shared/exercise';
import { OrderService, ShopModule } from './shared/shop';

@Module({ imports: [ShopModule.on(redisUrl())], controllers: [RefundController, FeedController] })
class AppModule {}

/** The same lock through messages: with it free, and while somebody else has it. */
const overMessages = async (
  app: INestApplication,
  server: InProcessServer,
): Promise<{ served: unknown; refused: unknown }> => {
  // Detached, as a message from another process is: no section around it holds its key.
  const ask = () => detached(() => server.ask('refund', { userId: 'ada' })).catch((error: unknown) => error);
  return { served: await ask(), refused: await app.get(OrderService).whileHeld('ada', ask) };
};

const LOOKS = 1_000;

/** Whether the lock of a feed is taken while a client reads it, and whether it comes free when that has left. */
const leaveFeed = async (
  app: INestApplication,
  path: string,
): Promise<{ taken: boolean; freed: boolean }> => {
  const locks = app.get(LockService);
  const comesToBe = async (expected: boolean): Promise<boolean> => {
    for (let look = 0; look < LOOKS; look++) {
      if ((await locks.isLocked('feed')) === expected) return true;
      await wait(5);
    }
    return false;
  };
  const leaving = new AbortController();
  const reading = fetch(`${await app.getUrl()}${path}`, { signal: leaving.signal }).catch(() => undefined);
  const taken = await comesToBe(true);
  leaving.abort();
  await reading;
  return { taken, freed: await comesToBe(false) };
};

const overFeeds = async (): Promise<unknown[]> => {
  const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
  app.enableShutdownHooks();
  await app.listen(0, '127.0.0.1');
  const feeds = [await leaveFeed(app, '/feed'), await leaveFeed(app, '/feed/later')];
  await app.close();
  return feeds;
};

async function main(): Promise<void> {
  const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
  const server = new InProcessServer();
  app.connectMicroservice({ strategy: server }, { inheritAppConfig: true });
  await app.startAllMicroservices();
  const messages = await overMessages(app, server);
  console.log(JSON.stringify({ ...(await exercise(app)), messages, feeds: await overFeeds() }));
}

void main();
