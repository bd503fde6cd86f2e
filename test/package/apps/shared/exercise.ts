import type { INestApplication } from '@nestjs/common';
import { Redis } from 'ioredis';
import { detached, LockConfigurationError, LockError, RedisLockModule } from 'nest-redis-lock';
import type { Answer, Report } from './report.js';
import { OrderService, type Order } from './shop.js';

const HOLD = 'lock:order:ada';

/** The address of the Redis server the test has started. */
export const redisUrl = (): string => {
  const url = process.env['REDIS_URL'];
  if (!url) throw new Error('REDIS_URL is not set');
  return url;
};

/** Which build of the library is at work: an error of its Nest layer knows the files it comes from. */
const loadedBuild = (): string => {
  try {
    RedisLockModule.forRoot(undefined as never);
  } catch (error) {
    if (!(error instanceof LockConfigurationError)) throw error;
    return /nest-redis-lock\/dist\/(esm|cjs)\//.exec(error.stack ?? '')?.[1] ?? 'unknown';
  }
  throw new Error('forRoot() accepted no options');
};

const refund = async (url: string): Promise<Answer> => {
  const response = await fetch(`${url}/orders/ada/refund`, { method: 'POST' });
  return {
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    body: (await response.json()) as Answer['body'],
  };
};

/** Closes the app while one caller holds the lock and one waits, for whom the app waits in turn: what that one hears. */
const closeWhileOneWaits = async (app: INestApplication): Promise<string> => {
  const orders = app.get(OrderService);
  const closing: Promise<void>[] = [];
  const heard = await orders.whileHeld('ada', async () => {
    const waiting = detached(() => orders.place('ada')).then(
      () => 'was let in',
      (error: unknown) => (error instanceof LockError ? error.code : String(error)),
    );
    orders.underWay = waiting;
    closing.push(app.close());
    return waiting;
  });
  await Promise.all(closing);
  return heard;
};

/** Takes locks in a running app in every usual way, and closes the app. */
export const exercise = async (app: INestApplication): Promise<Report> => {
  app.enableShutdownHooks();
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const orders = app.get(OrderService);
  const redis = new Redis(redisUrl());

  const placed: Order[] = [];
  const place = async (): Promise<unknown> => placed.push(await orders.place('ada'));
  await Promise.all(Array.from({ length: 10 }, place));
  const served = await refund(url);
  const [heldInRedis, refused] = await orders.whileHeld('ada', async () => [
    { fields: await redis.hlen(HOLD), ttlMs: await redis.pttl(HOLD) },
    await refund(url),
  ]);
  const leftInRedis = await redis.keys('lock:*');

  redis.disconnect();
  const heardAtClose = await closeWhileOneWaits(app);
  const { mostInside } = orders;
  const tokens = placed.map(({ token }) => token);
  return {
    build: loadedBuild(),
    tokens,
    mostInside,
    heldInRedis,
    served,
    refused,
    leftInRedis,
    heardAtClose,
  };
};
