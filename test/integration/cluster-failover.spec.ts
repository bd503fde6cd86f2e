import { LockStoreError } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { keysInSlots, PATIENCE_MS, TEST_MS, useCluster } from '../support/redis/cluster-lab.js';
import { holdName, newKey } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { ManualClock } from '../support/redis/manual-clock.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';

failOnUnhandledRejections();

const lab = useCluster({ forEachTest: true });

/** Asks until the key's slot has a master again. */
const works = ({ locks }: OpenLocks, key: string): Promise<unknown> =>
  until(() => locks.inspect(key).then(() => true), {
    timeoutMs: PATIENCE_MS,
    what: 'the slot has a master again',
  });

describe('a master of a cluster that fails over', { timeout: TEST_MS }, () => {
  it('keeps the lock of a holder if the replica has it', async () => {
    const a = lab.open({ watchdogMs: PATIENCE_MS });
    const lease = await a.locks.acquire(newKey());
    const before = await lab.redis.masterOf(holdName(lease.key));
    await lab.redis.inStep();
    await before.kill('SIGKILL');
    await works(a, lease.key);
    expect(await lab.redis.masterOf(holdName(lease.key))).not.toBe(before);
    expect(await lease.verify()).toBe(true);
    expect(await lease.release()).toBe('released');
    expect(a.events('lost')).toEqual([]);
  });

  it.each([
    ['no connection', 0],
    ['a connection to another master only', 1],
    ['a connection to each master', 3],
  ])('gives an app with %s its locks again, without a restart', async (_what, connections) => {
    const a = lab.open({ commandTimeoutMs: 500 });
    const key = newKey();
    const before = await lab.redis.masterOf(holdName(key));
    const others = (await lab.redis.masters()).filter((master) => master !== before);
    const used = [...others, before].slice(0, connections);
    for (const other of keysInSlots(40)) {
      if (used.includes(await lab.redis.masterOf(holdName(other))))
        await (await a.locks.acquire(other)).release();
    }
    await before.kill('SIGKILL');
    const lease = await until(() => a.locks.acquire(key), {
      timeoutMs: PATIENCE_MS,
      what: 'the app acquires from the promoted replica',
    });
    expect(await lab.redis.masterOf(holdName(key))).not.toBe(before);
    await a.locks.ping();
    expect(await lease.release()).toBe('released');
  });

  it('never reports the store as closed: a caller that waits for the old master asks the new one', async () => {
    const a = lab.open({ commandTimeoutMs: 20_000 });
    const key = newKey();
    await (await a.locks.acquire(key)).release();
    const before = await lab.redis.masterOf(holdName(key));
    await before.kill('SIGKILL');
    const leases = await Promise.all(
      [1, 2, 3].map(async () => (await a.locks.acquire(key, { waitMs: PATIENCE_MS })).release()),
    );
    expect(leases).toEqual(['released', 'released', 'released']);
  });

  it('tells a holder at once when its successor has not its hold', async () => {
    // No timer of the service ever fires: what it notices, it notices because of the new master.
    const a = lab.open({ watchdogMs: PATIENCE_MS }, undefined, new ManualClock().runtime('timeless'));
    const lease = await a.locks.acquire(newKey());
    const before = await lab.redis.masterOf(holdName(lease.key));
    await lab.redis.inStep();
    const replica = await lab.redis.replicaOf(before);
    await replica.cli('CONFIG', 'SET', 'replica-read-only', 'no');
    await before.kill('SIGSTOP');
    const removed = await until(
      async () => {
        const role = ((await replica.cli('ROLE')) as unknown[])[0];
        return role === 'master' && (await replica.cli('DEL', holdName(lease.key)));
      },
      { timeoutMs: PATIENCE_MS, what: 'the replica took over' },
    );
    expect(removed).toBe(1);
    await before.kill('SIGKILL');
    await until(() => lease.signal.aborted, { timeoutMs: PATIENCE_MS, what: 'the holder was told' });
    expect(await lease.release()).toBe('lost');
  });

  it('serves who waits on its successor', async () => {
    const [a, b] = [lab.open({ watchdogMs: PATIENCE_MS }), lab.open({ watchdogMs: PATIENCE_MS })];
    const lease = await a.locks.acquire(newKey());
    const waiting = b.locks.acquire(lease.key, { waitMs: PATIENCE_MS }).then((next) => next.release());
    await lab.waiting(a, lease.key, 1);
    await lab.redis.inStep();
    const before = await lab.redis.masterOf(holdName(lease.key));
    await lab.redis.promote(before);
    await works(a, lease.key);
    expect(await lease.release()).toBe('released');
    expect(await waiting).toBe('released');
  });

  it('without a replica costs the locks of its slots, and no others', async () => {
    const a = lab.open({ commandTimeoutMs: 500 });
    const keys = keysInSlots(40);
    await Promise.all(keys.map(async (key) => (await a.locks.acquire(key)).release()));
    const [gone] = await lab.redis.masters();
    const mine = await Promise.all(
      keys.map(async (key) => (await lab.redis.masterOf(holdName(key))) === gone),
    );
    await (await lab.redis.replicaOf(gone!)).kill('SIGKILL');
    await gone!.kill('SIGKILL');
    const outcomes = await Promise.all(
      keys.map((key) =>
        a.locks.acquire(key).then(
          (lease) => lease.release(),
          (failure: unknown) => (failure instanceof LockStoreError ? 'store' : failure),
        ),
      ),
    );
    expect(outcomes).toEqual(mine.map((isGone) => (isGone ? 'store' : 'released')));
  });

  it('grants locks that replicas have, if required, and locks of other servers stay held', async () => {
    const a = lab.open({ replicas: { min: 1, timeoutMs: 300 } });
    const keys = keysInSlots(20);
    const leases = await Promise.all(keys.map((key) => a.locks.acquire(key)));
    for (const { key } of leases) {
      const replica = await lab.redis.replicaOf(await lab.redis.masterOf(holdName(key)));
      await replica.cli('READONLY');
      expect(await replica.cli('DBSIZE')).toBeGreaterThan(0);
    }
    await Promise.all(leases.map((lease) => lease.release()));
    const [master] = await lab.redis.masters();
    const replica = await lab.redis.replicaOf(master!);
    await replica.kill('SIGSTOP');
    const outcomes = await Promise.all(
      keys.map((key) =>
        a.locks.acquire(key).then(
          async (lease) => {
            await lease.release();
            return true;
          },
          () => false,
        ),
      ),
    );
    await replica.kill('SIGCONT');
    const theirs = await Promise.all(
      keys.map(async (key) => (await lab.redis.masterOf(holdName(key))) !== master),
    );
    expect(outcomes).toEqual(theirs);
  });
});
