// What LockService, leases, events and the module give and take.
import { Inject, Injectable } from '@nestjs/common';
import { Redis } from 'ioredis';
import { expectTypeOf } from 'vitest';
import {
  currentLease,
  detached,
  getLockServiceToken,
  InjectLockService,
  lockKey,
  LockError,
  RedisLockModule,
  type Lease,
  type LockErrorCode,
  type LockService,
} from 'nest-redis-lock';

declare const locks: LockService;

export const service = async (): Promise<void> => {
  const number = await locks.withLock('key', () => 1);
  const text = await locks.withLock('key', {}, async () => '');
  const lease = await locks.acquire(['a', 'b']);
  const maybe = await locks.tryAcquire('key');
  expectTypeOf(number).toEqualTypeOf<number>();
  expectTypeOf(text).toEqualTypeOf<string>();
  expectTypeOf(lease).toEqualTypeOf<Lease>();
  expectTypeOf(maybe).toEqualTypeOf<Lease | null>();
  // @ts-expect-error 'maybe' is possibly 'null'
  await maybe.release();
  const ending = await lease.release();
  expectTypeOf(ending).toEqualTypeOf<'released' | 'lost'>();
  await using disposable = await locks.acquire('key');
  expectTypeOf(disposable.signal).toEqualTypeOf<AbortSignal>();
  expectTypeOf(disposable.fencingToken).toEqualTypeOf<number>();
  const ran = await lease.run((inner) => inner.tokenFor('a'));
  expectTypeOf(ran).toEqualTypeOf<number>();
  const outside = detached(() => currentLease('key').key);
  expectTypeOf(outside).toEqualTypeOf<string>();
};

export const events = (): void => {
  const stop = locks.on('acquired', ({ key, waitedMs, fencingToken }) => {
    expectTypeOf(key).toEqualTypeOf<string>();
    expectTypeOf(waitedMs).toEqualTypeOf<number>();
    expectTypeOf(fencingToken).toEqualTypeOf<number | undefined>();
  });
  expectTypeOf(stop).toEqualTypeOf<() => void>();
  // @ts-expect-error not assignable to parameter of type 'keyof LockEvents'
  locks.on('granted', () => undefined);
};

export const keys = (): string => {
  // @ts-expect-error Expected 2 arguments, but got 1
  lockKey('order:<<id>>');
  return lockKey('order:<<id>>', { id: 1 });
};

export const codes = (error: unknown): LockErrorCode | undefined => {
  if (!(error instanceof LockError)) return undefined;
  expectTypeOf(error.code).toEqualTypeOf<LockErrorCode>();
  return error.code;
};

@Injectable()
class Config {
  createRedisLockOptions() {
    return { redis: 'redis://localhost' };
  }
}

export const modules = (client: Redis) => [
  RedisLockModule.forRoot({ redis: 'redis://localhost' }),
  RedisLockModule.forRoot({ redis: { host: 'localhost', port: 6379 }, name: 'billing' }),
  RedisLockModule.forRoot({ redis: client, keyPrefix: undefined, waitMs: Infinity }),
  RedisLockModule.forRoot({ redis: client, interceptor: { takenStatus: 409 } }),
  RedisLockModule.forRoot({ redis: (_role, settings) => new Redis(settings), interceptor: false }),
  RedisLockModule.forRoot({ redis: 'redis://localhost', context: () => ({ tenant: 'acme' }) }),
  RedisLockModule.forRootAsync({ useClass: Config }),
  RedisLockModule.forRootAsync({ useExisting: Config, name: 'billing' }),
  RedisLockModule.forRootAsync({
    inject: [Config],
    useFactory: async (config: Config) => config.createRedisLockOptions(),
  }),
  // @ts-expect-error Type 'number' is not assignable to type
  RedisLockModule.forRoot({ redis: 7 }),
  // @ts-expect-error 'prefix' does not exist in type
  RedisLockModule.forRoot({ redis: 'redis://localhost', prefix: 'lock:' }),
  // @ts-expect-error Type 'string' is not assignable to type 'number'
  RedisLockModule.forRoot({ redis: 'redis://localhost', waitMs: '5s' }),
  // @ts-expect-error Property 'createRedisLockOptions' is missing
  RedisLockModule.forRootAsync({ useClass: class Empty {} }),
];

@Injectable()
export class Injected {
  @InjectLockService('billing') readonly asProperty!: LockService;

  constructor(
    @InjectLockService() readonly unnamed: LockService,
    @InjectLockService('billing') readonly named: LockService,
    @Inject(getLockServiceToken('billing')) readonly byToken: LockService,
  ) {}
}
