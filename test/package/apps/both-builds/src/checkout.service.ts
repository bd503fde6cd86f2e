import { Injectable } from '@nestjs/common';
import { BillingService } from 'billing';
import { currentLease, Locked, LockService } from 'nest-redis-lock';

/** Takes the same locks as the CommonJS package, through the ESM build. */
@Injectable()
export class CheckoutService {
  // By its class: no @Inject.
  constructor(
    readonly locks: LockService,
    private readonly billing: BillingService,
  ) {}

  @Locked('account:<<account>>', { waitMs: 20_000 })
  async pay(account: string): Promise<number> {
    await this.billing.meter.pass();
    return currentLease(`account:${account}`).fencingToken;
  }

  /** The token of one section, as seen by both builds, and that of a nested call into the other build. */
  @Locked('account:<<account>>', { waitMs: 0 })
  async tokens(account: string): Promise<readonly number[]> {
    const lease = currentLease();
    const nested = await lease.call(this.billing, this.billing.charge, account);
    return [lease.fencingToken, this.billing.token(), nested];
  }

  /** The same the other way round. */
  tokensOfBilling(account: string): Promise<readonly number[]> {
    return this.billing.audit(account, async (lease) => [
      this.billing.token(),
      lease.fencingToken,
      await lease.call(this, this.pay, account),
    ]);
  }
}

/** A class of this app on top of one of the package, with locked methods in both. */
@Injectable()
export class TrialService extends BillingService {
  @Locked('account-trial:<<account>>', { waitMs: 0 })
  async start(account: string): Promise<readonly string[]> {
    return this.audit(account, async () =>
      this.locks
        .held()
        .map(({ key }) => key)
        .sort(),
    );
  }
}
