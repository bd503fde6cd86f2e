import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { holdName, Lab, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';

/** Long beside what a wake-up takes. */
const SOON_MS = 8_000;
const MODES = ['read', 'write'] as const;

const lab = useLab();

/** Resolves when a lease of the short watchdog that has begun by now would have expired without a renewal. */
const pastTheLease = async (): Promise<void> => {
  const endsAt = performance.now() + SHORT_WATCHDOG.watchdogMs;
  await until(() => performance.now() > endsAt + 100, { what: 'the lease would be over' });
};

const untilQueued = (key: string, count: number, looker = lab.open()): Promise<unknown> =>
  until(async () => (await looker.locks.inspect(key))?.waiting.length === count, {
    what: `${count} stand in line for ${key}`,
  });

describe('a read-write lock', () => {
  it.each(MODES)(
    'held to %s while Redis loses its data: the release reports the loss, and the next locks of that name are renewed',
    async (mode) => {
      await using own = await Lab.start();
      const { locks, events } = own.open(SHORT_WATCHDOG);
      const lease = await locks.acquire('stock', { mode });
      await own.server.restart({ keepData: false });
      expect(await lease.release()).toBe('lost');
      expect(events('lost')).toEqual([expect.objectContaining({ key: 'stock' })]);
      for (const next of MODES) {
        await using again = await locks.acquire('stock', { mode: next });
        await pastTheLease();
        expect(await again.verify()).toBe(true);
      }
    },
  );

  it.each([
    ['is released', undefined],
    ['expires', 900],
  ])(
    'admits all waiting readers of several processes when the lease of a writer %s',
    async (_how, leaseMs) => {
      const [writer, ...readers] = [lab.open(), lab.open(), lab.open(), lab.open()];
      const lease = await writer.locks.acquire(newKey(), { mode: 'write', leaseMs });
      const reading = Array.from({ length: 20 }, (_, i) =>
        readers[i % 3]!.locks.acquire(lease.key, { mode: 'read', waitMs: 20_000 }),
      );
      await untilQueued(lease.key, 3);
      if (leaseMs === undefined) await lease.release();
      // No reader releases before all of them hold the lock.
      const leases = await within(SOON_MS, Promise.all(reading));
      expect(await Promise.all(leases.map((one) => one.verify()))).not.toContain(false);
      expect(await lease.release()).toBe(leaseMs === undefined ? 'released' : 'lost');
      expect((await writer.locks.inspect(lease.key))?.kind).toBe('read');
      await Promise.all(leases.map((one) => one.release()));
      await lab.nothingLeft(writer, ...readers);
    },
  );

  it('keeps its lease when a nested call requests a shorter one', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    await one.locks.withLock(key, { mode: 'write', leaseMs: 60_000 }, async (inside) => {
      for (const mode of MODES) {
        await one.locks.withLock(key, { mode, leaseMs: 1_000, inside }, () => undefined);
        expect(await lab.admin.pttl(holdName(key))).toBeGreaterThan(30_000);
        expect(await two.locks.tryAcquire(key, { mode: 'read' })).toBeNull();
      }
    });
    await (await two.locks.acquire(key, { mode: 'read', waitMs: 0 })).release();
  });

  it('stays held by fifty readers of five processes for longer than a lease, without a loss', async () => {
    const services = Array.from({ length: 5 }, () => lab.open(SHORT_WATCHDOG));
    const key = newKey();
    const leases = await Promise.all(
      Array.from({ length: 50 }, (_, i) => services[i % 5]!.locks.acquire(key, { mode: 'read' })),
    );
    await pastTheLease();
    expect(await Promise.all(leases.map((lease) => lease.verify()))).not.toContain(false);
    expect(await lab.open().locks.tryAcquire(key, { mode: 'write' })).toBeNull();
    expect(await Promise.all(leases.map((lease) => lease.release()))).not.toContain('lost');
    expect(services.flatMap(({ events }) => events('lost'))).toEqual([]);
    await lab.nothingLeft(...services);
  });

  it('shows the readers that hold it while writers wait', async () => {
    const readers = Array.from({ length: 5 }, () => lab.open());
    const writers = Array.from({ length: 8 }, () => lab.open());
    const key = newKey();
    const reading = await Promise.all(readers.map(({ locks }) => locks.acquire(key, { mode: 'read' })));
    const written = writers.map(({ locks }) => locks.withLock(key, { mode: 'write' }, () => 'written'));
    await untilQueued(key, 8);
    const state = (await readers[0]!.locks.inspect(key))!;
    expect(state.kind).toBe('read');
    expect(state.holders.map(({ owner }) => owner).sort()).toEqual(reading.map(({ owner }) => owner).sort());
    await Promise.all(reading.map((lease) => lease.release()));
    expect(await Promise.all(written)).toEqual(writers.map(() => 'written'));
    await lab.nothingLeft(...readers, ...writers);
  });
});
