// A package of another team, in CommonJS: it requires the library, and gets the other build of it.
import { Controller, Injectable, Param, Post } from '@nestjs/common';
import { currentLease, Locked, LockService, type Lease } from 'nest-redis-lock';
import { Meter } from './meter.js';

@Injectable()
export class BillingService {
  readonly meter = new Meter();

  // By its class: no @Inject.
  constructor(readonly locks: LockService) {}

  @Locked('account:<<account>>', { waitMs: 20_000 })
  async charge(account: string): Promise<number> {
    await this.meter.pass();
    return currentLease(`account:${account}`).fencingToken;
  }

  @Locked('account:<<account>>', { waitMs: 0 })
  async audit<T>(account: string, work: (lease: Lease) => Promise<T>): Promise<T> {
    return work(currentLease());
  }

  /** The token of the section the caller is in. */
  token(): number {
    return currentLease().fencingToken;
  }
}

@Controller('billing')
export class BillingController {
  @Post(':account')
  @Locked('account:<<account>>', { waitMs: 0 })
  async charge(@Param('account') account: string): Promise<{ account: string; token: number }> {
    return { account, token: currentLease().fencingToken };
  }
}

export { Meter };

/** The library as this package sees it. */
export * as lib from 'nest-redis-lock';
export * as fencing from 'nest-redis-lock/fencing';
export * as redis from 'nest-redis-lock/redis';
export * as store from 'nest-redis-lock/store';
