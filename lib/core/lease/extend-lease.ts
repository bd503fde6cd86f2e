import type { ExtendReply } from '../seam/reply.js';
import type { CoreContext } from '../core-context.js';
import { storeError } from '../errors/error-messages.js';
import { withLabel } from '../errors/lock.errors.js';
import type { Lease } from './lease.js';
import { renewalOf } from './renewal.js';
import { cutsOver } from './shortening.js';
import { checkMs } from '../settings/option-checks.js';

/**
 * Extends all holds of a lease to at least `ms` from now.
 *
 * @throws LockLostError when the lease is lost
 * @throws LockConfigurationError after its release, or for an invalid `ms`
 * @throws LockStoreError when the store fails
 */
export const extendLease = async (core: CoreContext, lease: Lease, ms: number): Promise<void> => {
  checkMs('extend', ms ?? null, { min: 1 });
  lease.mustBeHeld('extend');
  core.requests.checkExtension(ms);
  for (const part of lease.parts) part.hold.lengthenedBy(part, core.runtime.now() + ms);
  const cuts = lease.parts.map(({ hold }) => cutsOver(hold)).filter((cut) => cut !== undefined);
  if (cuts.length > 0) {
    // A cut that is sent meanwhile keeps that time. The extension counts from when the store is asked.
    await Promise.all(cuts);
    lease.mustBeHeld('extend');
    for (const part of lease.parts) part.hold.lengthenedBy(part, core.runtime.now() + ms);
  }
  await requestFor(core, lease, ms, 'extending');
  lease.mustBeHeld('extend');
};

/**
 * Resolves with whether the store still has all holds of a lease.
 *
 * @throws LockConfigurationError after its release
 * @throws LockStoreError when the store fails
 */
export const verifyLease = async (core: CoreContext, lease: Lease): Promise<boolean> => {
  if (lease.lost) return false;
  lease.mustBeHeld('verify');
  // An extension that changes nothing, because more time is left.
  await requestFor(core, lease, 1, 'verifying');
  if (lease.lost) return false;
  lease.mustBeHeld('verify');
  return true;
};

/** Requests `ms` for all holds of a lease, and applies the reply for each. */
const requestFor = async (core: CoreContext, lease: Lease, ms: number, doing: string): Promise<void> => {
  const { keeper, requests, runtime } = core;
  const holds = lease.parts.map(({ hold }) => hold);
  const sentAt = runtime.now();
  for (const hold of holds) hold.inStore.holdersRequest('sent', sentAt, ms);
  let replies: readonly ExtendReply[];
  try {
    const claims = holds.map((hold) => renewalOf(hold, ms));
    replies = await requests.request(lease.key, doing, () => requests.extendMany(claims));
  } catch (error) {
    throw withLabel(error, lease.parts[0]!.label);
  } finally {
    for (const hold of holds) hold.inStore.holdersRequest('over', runtime.now(), ms);
  }
  let failure: Error | undefined;
  holds.forEach((hold, i) => {
    const reply = replies[i] ?? { status: 'failed', cause: new Error('the store gave too few answers') };
    // Read the clock once: between two reads the lease could be reported lost, and then be renewed here.
    const now = runtime.now();
    const over = hold.overBy(now);
    if (over) hold.lose(over);
    if (hold.state !== 'held') return;
    // The lease ended meanwhile. If other leases share its hold, it was cut behind this request.
    if (lease.parts[i]!.state !== 'held') return;
    if (reply.status === 'lost') hold.lose(reply.intruder ? 'entered' : 'refused');
    else if (reply.status === 'failed') {
      const error = storeError(core.shown(hold.key), reply.cause, doing, now - sentAt);
      failure ??= withLabel(error, lease.parts[i]!.label);
    } else {
      hold.inStore.renew(reply.since ?? sentAt, ms, reply.validForMs, now);
      keeper.schedule(hold);
    }
  });
  if (failure && !lease.lost) throw failure;
};
