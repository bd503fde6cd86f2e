// A small shop, written once and compiled in every app: what users write does not depend on their Nest, their
// TypeScript or their module system.
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  Controller,
  Injectable,
  Module,
  Param,
  Post,
  type DynamicModule,
  type OnModuleDestroy,
} from '@nestjs/common';
import { currentLease, Locked, lockKey, LockService, RedisLockModule } from 'nest-redis-lock';

export interface Order {
  readonly userId: string;
  readonly token: number;
}

@Injectable()
export class OrderService implements OnModuleDestroy {
  /** What has to be over before the app goes on closing. */
  underWay: Promise<unknown> | undefined;
  private inside = 0;
  /** How many orders of one user were ever worked on at the same time. */
  mostInside = 0;

  // By its class: no @Inject.
  constructor(private readonly locks: LockService) {}

  async onModuleDestroy(): Promise<void> {
    await this.underWay;
  }

  @Locked('order:<<userId>>', { waitMs: 20_000 })
  async place(userId: string): Promise<Order> {
    this.mostInside = Math.max(this.mostInside, ++this.inside);
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    this.inside--;
    return { userId, token: currentLease(`order:${userId}`).fencingToken };
  }

  /** The same lock, by hand. */
  whileHeld<T>(userId: string, work: (token: number) => Promise<T>): Promise<T> {
    return this.locks.withLock(lockKey('order:<<userId>>', { userId }), (lease) => work(lease.fencingToken));
  }
}

@Controller('orders')
export class OrderController {
  constructor(private readonly orders: OrderService) {}

  @Post(':userId')
  place(@Param('userId') userId: string): Promise<Order> {
    return this.orders.place(userId);
  }

  @Locked('order:<<userId>>', { waitMs: 0 })
  @Post(':userId/refund')
  async refund(@Param('userId') userId: string): Promise<Order> {
    return { userId, token: currentLease().fencingToken };
  }
}

@Module({})
export class ShopModule {
  static on(redis: string): DynamicModule {
    return {
      module: ShopModule,
      imports: [RedisLockModule.forRoot({ redis })],
      controllers: [OrderController],
      providers: [OrderService],
    };
  }
}
