import {
  coldKey,
  hotKey,
  inside,
  LONG_WAIT_MS,
  newKey,
  SHORT_WAIT_MS,
  type Cycle,
} from '../../support/cycles/cycle.js';

/** The same key again and again, each time from further inside. */
const nested: Cycle = ({ locks, longLived, occupancy, n }) => {
  const key = coldKey(n);
  return locks.withLock(key, { signal: longLived }, (outer) =>
    locks.withLock(key, { signal: longLived, inside: outer }, async (lease) =>
      lease.run(() => locks.withLock(key, { inside: lease }, inside(occupancy, key))),
    ),
  );
};

/** Calls that are nested in one section and want the same key go in one after the other. */
const siblings: Cycle = ({ locks, longLived, occupancy, n }) => {
  const key = coldKey(n);
  return locks.withLock(key, async (outer) => {
    const sibling = () => locks.withLock(key, { signal: longLived, inside: outer }, inside(occupancy, key));
    const [first] = await Promise.all([sibling(), sibling(), sibling()]);
    return first;
  });
};

/** One key inside another; the inner one may not be free in time. */
const ordered: Cycle = async ({ locks, occupancy, n }) => {
  const [outer, inner] = [`a-${newKey(n)}`, hotKey(n)];
  await using lease = await locks.acquire(outer);
  return await lease.run(() => locks.withLock(inner, { waitMs: SHORT_WAIT_MS }, inside(occupancy, inner)));
};

/** All or none, also when one of them is not free in time: then those that were there are given back. */
const several: readonly Cycle[] = [LONG_WAIT_MS, SHORT_WAIT_MS].map(
  (waitMs) =>
    ({ locks, longLived, occupancy, n }) => {
      const keys = [newKey(n), hotKey(n), coldKey(n)];
      return locks.withLock(keys, { waitMs, signal: longLived }, inside(occupancy, ...keys));
    },
);

/** A part of a section that does not say so waits for the section, as any other caller. */
const unproven: Cycle = ({ locks, n }) => {
  const key = newKey(n);
  return locks.withLock(key, () => locks.withLock(key, { waitMs: SHORT_WAIT_MS }, () => 'held' as const));
};

/** The kind of a nested call cannot enter the outer lease. */
const refusedInside: Cycle = ({ locks, n }) => {
  const key = newKey(n);
  return locks.withLock(key, (outer) =>
    locks.withLock(key, { mode: 'read', inside: outer }, () => 'held' as const),
  );
};

/** Locks within locks, and several at once. */
export const NESTED_CYCLES: readonly Cycle[] = [
  ...[nested, siblings, ordered],
  ...several,
  ...[unproven, refusedInside],
];
