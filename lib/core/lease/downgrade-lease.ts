import type { CoreContext } from '../core-context.js';
import { LockConfigurationError, withLabel } from '../errors/lock.errors.js';
import { storeError } from '../errors/error-messages.js';
import { kindOf, type LockKind } from '../kinds/kinds.js';
import type { Claim } from '../seam/claim.js';
import type { Hold } from './hold.js';
import type { LeasePart } from './lease-part.js';
import type { Lease } from './lease.js';

/** Lease to request for a hold with a fixed lease: it is less than what is left, so nothing changes. */
const NO_LONGER_MS = 1;

/**
 * Downgrades the holds of a lease. In this process they count as downgraded once requested: whatever the outcome of the
 * request, the caller has only the lesser right. A repeated call sends the request again, since the store may not have
 * got the first one.
 */
export const downgradeLease = async (core: CoreContext, lease: Lease): Promise<void> => {
  lease.mustBeHeld('downgrade');
  for (const part of lease.parts) check(core, part);
  await Promise.all(
    lease.parts.map(({ hold, label }) =>
      downgrade(core, hold).catch((error: unknown) => {
        throw withLabel(error, label);
      }),
    ),
  );
  lease.mustBeHeld('downgrade');
};

const check = (core: CoreContext, { key: given, hold, outer, siblings }: LeasePart): void => {
  const { noun, downgradesTo } = kindOf(hold.takenAs);
  const refuse = (why: string): never => {
    const key = core.shown(given);
    throw new LockConfigurationError(`The ${noun} on "${key}" cannot be downgraded: ${why}.`, { key });
  };
  if (downgradesTo === undefined) refuse('only a write lock can');
  if (outer) refuse('it belongs to a call around this one; downgrade the lease of that');
  if (siblings?.inUse) refuse('nested calls are inside it; downgrade it when they have ended');
  core.requests.checkDowngrade(hold.takenAs);
};

const downgrade = async (core: CoreContext, hold: Hold): Promise<void> => {
  const { keeper, requests, runtime } = core;
  const writer = hold.endListener;
  const isFirst = hold.claim.kind === hold.takenAs;
  if (isFirst) become(core, hold);
  const sentAt = runtime.now();
  const requestedMs = hold.watchdogMs ?? NO_LONGER_MS;
  hold.inStore.holdersRequest('sent', sentAt, requestedMs);
  const claim = { ...hold.claim, leaseMs: requestedMs, tokens: 0 };
  const sent = requests.request(hold.key, 'downgrading', () => requests.downgrade(claim));
  // The next writer of this process sends its request behind this one.
  if (isFirst) writer.leave();
  let reply;
  try {
    reply = await sent;
  } finally {
    hold.inStore.holdersRequest('over', runtime.now(), requestedMs);
  }
  const now = runtime.now();
  const over = hold.overBy(now);
  if (over) hold.lose(over);
  if (hold.state !== 'held') return;
  if (reply.status === 'failed')
    throw storeError(core.shown(hold.key), reply.cause, 'downgrading', now - sentAt);
  if (reply.status === 'lost') return hold.lose('refused');
  hold.inStore.renew(sentAt, requestedMs, reply.validForMs, now);
  keeper.schedule(hold);
};

/** Moves the hold to the queue of the lesser kind, which releases it later. */
const become = (core: CoreContext, hold: Hold): void => {
  const kind = kindOf(hold.takenAs).downgradesTo as LockKind;
  const queue = core.queue(kind, hold.claim.finalKey, hold.key);
  queue.granted(false);
  hold.downgraded({ ...hold.claim, kind, tokens: 0 } as Claim, queue.endListener);
};
