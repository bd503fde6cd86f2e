import { once } from 'node:events';
import { LockLostError, type Lease } from 'nest-redis-lock';
import { abortsSoon, newKey, type Cycle } from '../../support/cycles/cycle.js';

const SHORT_LEASE_MS = 20;

const isLost = async ({ signal }: Lease): Promise<void> => {
  if (!signal.aborted) await once(signal, 'abort');
};

/** On a busy machine so short a lease can be over before its caller has it, several times in a row. */
const orOverAtOnce =
  (cycle: Cycle): Cycle =>
  (caller) =>
    cycle(caller).catch((error: unknown) => {
      if (error instanceof LockLostError) return 'expired';
      throw error;
    });

/** A fixed lease that is over before the work is. The holder hears of it. */
const expired = orOverAtOnce(async ({ locks, longLived, n }) => {
  const lease = await locks.acquire(newKey(n), { leaseMs: SHORT_LEASE_MS, signal: longLived });
  await isLost(lease);
  return (await lease.release()) === 'lost' ? 'expired' : 'held';
});

/** Ended by force, in the own process: it is known at once. */
const forced: Cycle = async ({ locks, n }) => {
  const key = newKey(n);
  return locks.withLock(key, { onLost: 'throw' }, async (lease) => {
    await locks.forceUnlock(key);
    return lease.lost ? 'lost' : 'held';
  });
};

/** Ended by force, elsewhere: the release finds out. */
const forcedElsewhere: Cycle = async ({ locks, others, n }) => {
  const key = newKey(n);
  const lease = await locks.acquire(key);
  await others.forceUnlock(key);
  return (await lease.release()) === 'lost' ? 'lost' : 'held';
};

/** Somebody else has it by the time its holder wants to lengthen it. */
const takenOver: Cycle = async ({ locks, others, longLived, n }) => {
  const key = newKey(n);
  await using lease = await locks.acquire(key);
  const waiting = others.acquire(key, { signal: longLived });
  await others.forceUnlock(key);
  await using _next = await waiting;
  await lease.extend(60_000);
  return 'held';
};

/** Lost by a section in which somebody then wants to go into it. */
const lostAround = orOverAtOnce(({ locks, n }) => {
  const key = newKey(n);
  return locks.withLock(key, { leaseMs: SHORT_LEASE_MS }, async (lease) => {
    await isLost(lease);
    const refusal: unknown = await locks.withLock(key, () => undefined).catch((error: unknown) => error);
    return refusal instanceof LockLostError ? 'expired' : 'held';
  });
});

/** Called off while the answer is under way: what that brings is nobody's. */
const abandoned: Cycle = async ({ locks, n }) => {
  await using _lease = await locks.acquire(newKey(n), { signal: abortsSoon() });
  return 'held';
};

/** Leases that end before their holders want it, or that nobody wants any more when they come. */
export const LOST_CYCLES: readonly Cycle[] = [
  expired,
  forced,
  forcedElsewhere,
  takenOver,
  lostAround,
  abandoned,
];
