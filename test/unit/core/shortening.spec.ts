import { expect, describe, it } from 'vitest';
import { coreUnderTest, watched, type Watched } from '../../support/core/core-under-test.js';
import { granted, notExecuted } from '../../support/core/scripted-store.js';
import { settled } from '../../support/core/virtual-runtime.js';
import type { Lease } from '../../../lib/core/lease/lease.js';

/** Returns `count` read leases of one hold. All but the first have extended it. */
const extended = async (count: number) => {
  const core = coreUnderTest();
  const leases: Watched<Lease>[] = [];
  for (let i = 0; i < count; i++) {
    leases.push(watched(core.manager.acquire(['k'], core.call({ kind: 'read' }))));
    await settled();
    if (i === 0) await core.store.next('acquire').reply(granted(1, 30_000));
  }
  const [stays, ...others] = leases.map(({ value }) => value!);
  for (const lease of others) {
    const extension = watched(lease.extend(60_000));
    await settled();
    await core.store.next('extend').reply([{ status: 'held', validForMs: 60_000 }]);
    expect(extension.state).toBe('fulfilled');
  }
  return { core, stays: stays!, others };
};

describe('the end of a lease that had extended a hold which others have', () => {
  it('takes nothing away of an extension of theirs that is under way', async () => {
    const { core, stays, others } = await extended(2);
    const { runtime } = core;
    const started = runtime.now();
    let ticks = 0;
    // A clock goes on between two looks.
    runtime.now = () => started + (ticks += 0.001);
    void stays.extend(100_000);
    await settled();
    void core.manager.release(others[0]!);
    await settled();
    await core.store.next('extend').reply([{ status: 'held', validForMs: 100_000 }]);
    await core.store.next('release').fail(notExecuted());
    expect(stays.remainingMs()).toBeGreaterThan(99_000);
  });

  it('asks the store once for all leases that end while that is under way', async () => {
    const { core, others } = await extended(6);
    const ends = others.map((lease) => watched(core.manager.release(lease)));
    await settled();
    await core.store.next('release').fail(notExecuted());
    expect(ends.map(({ state }) => state)).toEqual(ends.map(() => 'fulfilled'));
    await core.runtime.pass(1_000);
    expect(
      core.store.unanswered.map(({ name }) => name),
      'one timer tries again',
    ).toEqual(['release']);
    await core.store.next('release').reply({ wasHeld: true, othersWaiting: false });
    await core.runtime.pass(5_000);
    expect(core.store.unanswered).toEqual([]);
  });

  it('leaves the others what they have requested at once, also while an earlier cut is in progress', async () => {
    const { core, stays, others } = await extended(3);
    void others[0]!.extend(90_000);
    await settled();
    await core.store.next('extend').reply([{ status: 'held', validForMs: 90_000 }]);
    void core.manager.release(others[0]!);
    await settled();
    expect(stays.remainingMs()).toBe(60_000);
    void core.manager.release(others[1]!);
    expect(stays.remainingMs()).toBe(30_000);
    await core.store.next('release').reply({ wasHeld: true, othersWaiting: false });
    expect(stays.remainingMs()).toBe(30_000);
    await core.store.next('release').reply({ wasHeld: true, othersWaiting: false });
    expect(stays.remainingMs()).toBe(30_000);
    expect(core.store.unanswered).toEqual([]);
  });
});
