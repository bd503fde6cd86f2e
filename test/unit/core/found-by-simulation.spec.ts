import { beforeEach, describe, expect, it } from 'vitest';
import { LockNotAcquiredError, LockStoreError } from '../../../lib/core/errors/lock.errors.js';
import type { LockCall } from '../../../lib/core/settings/lock-call.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { coreUnderTest, watched } from '../../support/core/core-under-test.js';
import {
  granted,
  notExecuted,
  notHeld,
  released,
  taken,
  unknown,
} from '../../support/core/scripted-store.js';

let core: ReturnType<typeof coreUnderTest>;

const acquire = (keys: readonly string[], options: Partial<LockCall> = {}) =>
  watched(core.manager.acquire(keys, core.call(options)));

beforeEach(() => {
  core = coreUnderTest();
});

/** What test/simulation found in the core; each of these once went wrong there. */
describe('a wait', () => {
  it('that is over between two tries of a store that asks for patience is a failure of the store, not "taken"', async () => {
    const caller = acquire(['k'], { waitMs: 30 });
    await core.store.next('acquire').fail(new StoreFailure('TRYAGAIN', 'not-executed', { transient: true }));
    await core.runtime.pass(30);
    await core.store.next('acquire').fail(new StoreFailure('TRYAGAIN', 'not-executed', { transient: true }));
    expect(caller.error).toBeInstanceOf(LockStoreError);
    expect(caller.error).toMatchObject({ outcome: 'not-executed' });
  });

  it('that is shorter than the time in which other processes go first asks at its end, not after it', async () => {
    const first = acquire(['k']);
    await core.store.next('acquire').answer(granted());
    void first.value!.release();
    await core.store.next('release').answer(released(true));
    const caller = acquire(['k'], { waitMs: 10 });
    await core.runtime.pass(9);
    expect(core.store.open).toEqual([]);
    await core.runtime.pass(1);
    await core.store.next('acquire').answer(taken());
    expect(caller.error).toBeInstanceOf(LockNotAcquiredError);
  });

  it('looks again when the hold in the way ends, however late it heard of it', async () => {
    acquire(['k'], { waitMs: 60_000 });
    await core.runtime.pass(900);
    await core.store.next('acquire').answer(taken(1_000));
    await core.store.watching[0]!.becomeLive();
    await core.runtime.pass(900);
    await core.store.next('acquire').answer(taken(100));
    await core.runtime.pass(1);
    expect(core.store.open.map(({ name }) => name)).toEqual(['acquire']);
  });
});

describe('several keys', () => {
  it('who does not get them all is told so at once, while those taken before are given back', async () => {
    const caller = acquire(['a', 'b'], { waitMs: 100 });
    await core.store.next('acquire').answer(granted());
    await core.store.next('acquire').answer(taken());
    await core.runtime.pass(100);
    await core.store.next('acquire').answer(taken());
    expect(caller.error).toMatchObject({ code: 'LOCK_TAKEN', key: 'b' });
    expect(core.manager.usage).toMatchObject({ leases: 0, undoing: 1 });
    await core.store.next('release').answer(released());
    expect(core.manager.usage).toMatchObject({ keys: 0, undoing: 0 });
  });

  it('a shorter lease in the end is told to those who wait: they were told of the longer one', async () => {
    acquire(['a', 'b'], { leaseMs: 500 });
    await core.store.next('acquire').answer(granted());
    expect(core.store.next('acquire').claim.rearms, 'a first request').toBeUndefined();
    await core.store.next('acquire').answer(granted());
    expect(core.store.open.map(({ claim }) => [claim.leaseMs, claim.rearms])).toEqual([
      [500, true],
      [500, true],
    ]);
  });
});

describe('a renewal', () => {
  /** A lease that was extended to 120,000 ms, and a renewal of it that takes 5,000 ms to be answered. */
  const renewedWith = async (validForMs: number) => {
    const lease = acquire(['k']);
    await core.store.next('acquire').answer(granted(1, 30_000));
    void lease.value!.extend(120_000);
    await core.store.next('extend').answer([{ status: 'held', validForMs: 120_000 }]);
    await core.runtime.pass(10_000);
    const renewal = core.store.next('extend');
    await core.runtime.pass(5_000);
    await renewal.answer([{ status: 'held', validForMs }]);
    return lease.value!.remainingMs();
  };

  it('that is under way for long takes nothing away: what was known before stays true', async () => {
    expect(await renewedWith(108_000)).toBe(105_000);
  });

  it('whose answer certainly says less is believed', async () => {
    expect(await renewedWith(40_000)).toBe(35_000);
  });

  it('that leaves nothing is a loss at once, not at the next renewal', async () => {
    expect(await renewedWith(5_000)).toBe(0);
    await core.runtime.pass(1);
    expect(core.manager.usage.holds).toBe(0);
  });
});

describe('a hold whose release fails', () => {
  const releasesFailFor = async (ms: number): Promise<void> => {
    const end = core.runtime.now() + ms;
    while (core.runtime.now() < end) {
      while (core.store.open.length > 0) await core.store.next('release').fail(notExecuted());
      await core.runtime.pass(10);
    }
  };

  it('is given back for as long as a renewal without an answer may have kept it', async () => {
    const lease = acquire(['k']);
    await core.store.next('acquire').answer(granted(1, 30_000));
    for (let i = 0; i < 2; i += 1) {
      await core.runtime.pass(10_000);
      await core.store.next('extend').fail(unknown());
    }
    // Known to be valid until 30,000, but the last renewal may have made it 50,000.
    watched(lease.value!.release());
    await releasesFailFor(29_000);
    expect(core.manager.usage.undoing, '49,000').toBe(1);
    await core.runtime.pass(1_100);
    if (core.store.open.length > 0) await core.store.next('release').answer(notHeld);
    expect(core.manager.usage.undoing).toBe(0);
  });

  it('is given back once more at the very end, not only before the last pause', async () => {
    const lease = acquire(['k'], { leaseMs: 1_000 });
    await core.store.next('acquire').answer(granted(1, 1_000));
    watched(lease.value!.release());
    await releasesFailFor(990);
    const before = core.store.count('release');
    await core.runtime.pass(10);
    expect(core.store.count('release') + core.store.open.length).toBeGreaterThan(before);
  });
});
