import {
  abortsSoon,
  coldKey,
  inside,
  LONG_WAIT_MS,
  SHORT_WAIT_MS,
  type Cycle,
} from '../../support/cycles/cycle.js';

/** How many permits each of the keys has. */
export const PERMITS = 3;

const KEYS = 2;

const permitKey = (n: number): string => `permits-${n % KEYS}`;

/** Whether a key in Redis is the counter of one of these. */
export const isCounter = (key: string): boolean => /:permits-\d+$/.test(key);

/** Waits that are as long as it takes, waits that end before a permit is free, and waits that are given up. */
const waiting: readonly Cycle[] = [
  { waitMs: LONG_WAIT_MS },
  { waitMs: SHORT_WAIT_MS },
  { waitMs: LONG_WAIT_MS, signal: abortsSoon },
].map(({ waitMs, signal }) => ({ locks, longLived, occupancy, n }) => {
  const key = permitKey(n);
  const options = { waitMs, signal: signal?.() ?? longLived };
  return locks.permits(key, { permits: PERMITS }).withPermit(options, inside(occupancy.of(PERMITS), key));
});

const tried: Cycle = async ({ locks, occupancy, n }) => {
  const key = permitKey(n);
  const lease = await locks.permits(key, { permits: PERMITS }).tryAcquire();
  if (!lease) return 'refused';
  await lease.run(inside(occupancy.of(PERMITS), key));
  await lease.release();
  return 'held';
};

/** One more permit inside a permit, which may not be free in time; and a lock inside that. */
const within: Cycle = async ({ locks, others, longLived, occupancy, n }) => {
  const key = permitKey(n);
  await using lease = await others.permits(key, { permits: PERMITS }).acquire({ signal: longLived });
  return await lease.run(() =>
    locks
      .permits(key, { permits: PERMITS })
      .withPermit({ waitMs: SHORT_WAIT_MS }, () => locks.withLock(coldKey(n), inside(occupancy, coldKey(n)))),
  );
};

/** Permits of few keys that many want. */
export const PERMIT_CYCLES: readonly Cycle[] = [...waiting, tried, within];
