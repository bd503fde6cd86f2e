import { describe, expect, it } from 'vitest';
import { coreUnderTest, watched } from '../../support/core/core-under-test.js';
import { granted } from '../../support/core/scripted-store.js';

describe('a renewal', () => {
  /** A lease that was extended to 120,000 ms, and a renewal of it that takes 5,000 ms to be answered. */
  const renewedWith = async (validForMs: number) => {
    const core = coreUnderTest();
    const lease = watched(core.manager.acquire(['k'], core.call()));
    await core.store.next('acquire').reply(granted(1, 30_000));
    void lease.value!.extend(120_000);
    await core.store.next('extend').reply([{ status: 'held', validForMs: 120_000 }]);
    await core.runtime.pass(10_000);
    const renewal = core.store.next('extend');
    await core.runtime.pass(5_000);
    await renewal.reply([{ status: 'held', validForMs }]);
    return { core, leftMs: lease.value!.remainingMs() };
  };

  it('that is under way for long takes nothing away: what was known before stays true', async () => {
    expect((await renewedWith(108_000)).leftMs).toBe(105_000);
  });

  it('whose answer certainly says less is believed', async () => {
    expect((await renewedWith(40_000)).leftMs).toBe(35_000);
  });

  it('that leaves nothing is a loss at once, not at the next renewal', async () => {
    const { core, leftMs } = await renewedWith(5_000);
    expect(leftMs).toBe(0);
    await core.runtime.pass(1);
    expect(core.manager.usage.holds).toBe(0);
  });
});
