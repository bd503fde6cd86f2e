import {
  abortsSoon,
  coldKey,
  hotKey,
  inside,
  LONG_WAIT_MS,
  newKey,
  SHORT_WAIT_MS,
  type Cycle,
} from './cycle.js';

/** Waits that are as long as it takes, waits that end before the key is free, and waits that are given up. */
const waiting: readonly Cycle[] = [
  { waitMs: LONG_WAIT_MS },
  { waitMs: SHORT_WAIT_MS },
  { waitMs: LONG_WAIT_MS, signal: abortsSoon },
].map(({ waitMs, signal }) => ({ locks, longLived, occupancy, n }) => {
  const key = hotKey(n);
  return locks.withLock(key, { waitMs, signal: signal?.() ?? longLived }, inside(occupancy, key));
});

const tried: Cycle = async ({ locks, occupancy, n }) => {
  const key = hotKey(n);
  const lease = await locks.tryAcquire(key);
  if (!lease) return 'refused';
  await lease.run(inside(occupancy, key));
  await lease.release();
  return 'held';
};

const disposed: Cycle = async ({ locks, longLived, occupancy, n }) => {
  const key = coldKey(n);
  await using lease = await locks.acquire(key, { signal: longLived });
  lease.signal.throwIfAborted();
  return await inside(occupancy, key)();
};

const neverRepeated: Cycle = ({ locks, occupancy, n }) => {
  const key = newKey(n);
  return locks.withLock(key, inside(occupancy, key));
};

/** Hot, cold and never repeated keys, with time-outs and aborts. The benchmark runs these. */
export const PLAIN_CYCLES: readonly Cycle[] = [
  ...waiting,
  tried,
  disposed,
  disposed,
  neverRepeated,
  neverRepeated,
];
