import type { CoreContext } from './core-context.js';
import { lostError, storeError } from './failures.js';
import type { Lease } from './lease.js';
import { checkMs } from './option-checks.js';

/** Makes all holds of a lease last at least `ms` from now. Throws when it is lost, or the store fails. */
export const extendLease = async (core: CoreContext, lease: Lease, ms: number): Promise<void> => {
  const { keeper, runtime, store } = core;
  checkMs('extend', ms ?? null, { min: 1 });
  const holds = lease.parts.map((part) => part.hold);
  const sentAt = runtime.now();
  if (lease.loss) throw lease.loss;
  const underWay = (count: 1 | -1): void => {
    for (const hold of holds) {
      hold.extending += count;
      hold.mayLast(runtime.now() + ms);
    }
  };
  underWay(1);
  const replies = await core.asking(lease.key, 'extending', () =>
    store
      .extendMany(holds.map(({ claim }) => ({ ...claim, leaseMs: ms, fenceBlock: 0 })))
      .finally(() => underWay(-1)),
  );
  holds.forEach((hold, i) => {
    const reply = replies[i]!;
    // One look at the clock: whoever stopped believing in the hold between two would begin again.
    const now = runtime.now();
    if (now >= hold.validUntil) hold.lose('expired');
    if (reply.status === 'lost') hold.lose('refused');
    else if (reply.status === 'failed') throw storeError(hold.key, reply.cause, 'extending', now - sentAt);
    else if (hold.state === 'held') {
      hold.renew(sentAt, reply.validForMs, now);
      keeper.watch(hold);
    }
    if (hold.state !== 'held') {
      throw lostError(hold.key, hold.lossReason ?? 'refused', runtime.now() - hold.grantedAt);
    }
  });
};
