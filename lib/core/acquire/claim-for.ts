import type { CoreContext } from '../context/core-context.js';
import type { Claim } from '../seam/claim.js';
import { MAX_LEASES } from './hand-off-batch.js';
import { sendableUntil, type TimedWait } from '../wait/wait.js';
import type { WantedHold } from './wanted-hold.js';

/** What a claim takes from its service. */
export type ClaimSource = Pick<
  CoreContext,
  'entries' | 'nextOwner' | 'runtime' | 'settings' | 'store' | 'traits' | 'withdrawnBy'
>;

/** Returns the claim as it may be sent now: also after its time, a caller asks once whether the store works. */
export const sendableNow = (claim: Claim, wait: TimedWait, now: number): Claim => {
  const until = sendableUntil(wait, now);
  return claim.until === undefined || claim.until >= until ? claim : { ...claim, until };
};

/** Returns a claim of a new owner. */
export const claimFor = (core: ClaimSource, wanted: WantedHold, wait: TimedWait): Claim => {
  const { finalKey, call } = wanted;
  const { kind } = call;
  const { fenced, handedOff } = core.traits[kind];
  const owner = core.nextOwner(kind);
  const leaseMs = Math.max(wanted.leaseMs ?? call.watchdogMs, call.holdAtLeastMs);
  const { fencing } = core.settings;
  const tokens = fenced && fencing !== false ? 1 : 0;
  const waits = call.waitMs > 0;
  // One key that is not waited for has the time-out of requests, and several have it together.
  const timed = waits ? wait : { startedAt: wait.startedAt, waitMs: core.store.commandTimeoutMs };
  const until = sendableUntil(timed, core.runtime.now());
  const withdrawnBy = core.withdrawnBy(wait);
  if (kind === 'permit')
    return { kind, finalKey, owner, leaseMs, tokens, waits, of: call.permits, until, withdrawnBy };
  const mayPassOn = handedOff && wanted.watchdogMs !== undefined;
  const entryTerms = waits
    ? core.entries.termsFor(call.watchdogMs, mayPassOn ? tokens * MAX_LEASES : tokens)
    : undefined;
  const perKeyCounter = fencing === 'redisson';
  return { kind, finalKey, owner, leaseMs, tokens, waits, entryTerms, perKeyCounter, until, withdrawnBy };
};
