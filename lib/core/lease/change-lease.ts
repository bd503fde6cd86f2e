import type { CoreContext } from '../context/core-context.js';
import { storeError } from '../errors/error-messages.js';
import { withLabel, LockConfigurationError } from '../errors/lock.errors.js';
import { kindOf, type LockKind } from '../kinds/kinds.js';
import type { Claim } from '../seam/claim.js';
import type { ExtendReply } from '../seam/reply.js';
import { checkMs } from '../settings/option-checks.js';
import type { Hold } from './hold.js';
import type { LeasePart } from './lease-part.js';
import type { Lease } from './lease.js';
import { renewalOf } from './renewal.js';
import { cutsOver } from './shortening.js';

/** What a change of a lease uses of its service. */
type Core = Pick<CoreContext, 'keeper' | 'queues' | 'requests' | 'runtime' | 'shown'>;

/**
 * Extends all holds of a lease to at least `ms` from now.
 *
 * @throws LockLostError when the lease is lost
 * @throws LockConfigurationError after its release, or for an invalid `ms`
 * @throws LockStoreError when the store fails
 */
export const extendLease = async (core: Core, lease: Lease, ms: number): Promise<void> => {
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
export const verifyLease = async (core: Core, lease: Lease): Promise<boolean> => {
  if (lease.lost) return false;
  lease.mustBeHeld('verify');
  // An extension that changes nothing, because more time is left.
  await requestFor(core, lease, 1, 'verifying');
  if (lease.lost) return false;
  lease.mustBeHeld('verify');
  return true;
};

/** Requests `ms` for all holds of a lease, and applies the reply for each. */
const requestFor = async (core: Core, lease: Lease, ms: number, doing: string): Promise<void> => {
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

/** Lease to request for a hold with a fixed lease: it is less than what is left, so nothing changes. */
const NO_LONGER_MS = 1;

/**
 * Downgrades the holds of a lease. In this process they count as downgraded once requested: whatever the outcome of the
 * request, the caller has only the lesser right. A repeated call sends the request again, since the store may not have
 * got the first one.
 */
export const downgradeLease = async (core: Core, lease: Lease): Promise<void> => {
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

const check = (core: Core, { key: given, hold, outer, siblings }: LeasePart): void => {
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

const downgrade = async (core: Core, hold: Hold): Promise<void> => {
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
const become = (core: Core, hold: Hold): void => {
  const kind = kindOf(hold.takenAs).downgradesTo as LockKind;
  const queue = core.queues.forCaller(kind, hold.claim.finalKey, hold.key);
  queue.granted(false);
  hold.downgraded({ ...hold.claim, kind, tokens: 0 } as Claim, queue.endListener);
};
