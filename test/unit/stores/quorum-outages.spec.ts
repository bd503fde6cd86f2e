import { describe, expect, it } from 'vitest';
import { claimFor, newKey } from '../../support/stores/harness.js';
import { threeNodes } from '../../support/stores/quorum-nodes.js';

const three = () => {
  const { runtime, servers, store, warnings } = threeNodes();
  const take = () =>
    store.kinds.exclusive!.acquire(claimFor(newKey(), { leaseMs: 10_000, tokens: 0 })).catch(() => undefined);
  /** Takes a lock now, and again each second of these. */
  const takeFor = async (seconds: number): Promise<void> => {
    await take();
    for (let i = 0; i < seconds; i++) {
      await runtime.pass(1_000);
      await take();
    }
  };
  return { servers, warnings, takeFor };
};

const DOWN = 'The node b of the quorum has not worked for 5.0 s: ';

describe('a node that does not work, while a majority does', () => {
  it('is told once it has failed for 5 s, with the cause, and again when it works', async () => {
    const { servers, warnings, takeFor } = three();
    servers[1]!.isDown = true;
    await takeFor(4);
    expect(warnings).toEqual([]);
    await takeFor(20);
    expect(warnings).toEqual([`${DOWN}connection refused. Locks go on while a majority does.`]);
    servers[1]!.isDown = false;
    await takeFor(2);
    expect(warnings.slice(1)).toEqual(['The node b of the quorum works again, after 24 s.']);
  });

  it('is reported again the next time', async () => {
    const { servers, warnings, takeFor } = three();
    for (let i = 0; i < 2; i++) {
      servers[1]!.isDown = true;
      await takeFor(8);
      servers[1]!.isDown = false;
      await takeFor(1);
    }
    expect(warnings.filter((warning) => warning.startsWith(DOWN))).toHaveLength(2);
    expect(warnings).toHaveLength(4);
  });

  it('is not told when it fails now and then', async () => {
    const { servers, warnings, takeFor } = three();
    for (let i = 0; i < 8; i++) {
      servers[1]!.isDown = i % 2 === 0;
      await takeFor(3);
    }
    expect(warnings).toEqual([]);
  });

  it('is told of each when there is no majority either', async () => {
    const { servers, warnings, takeFor } = three();
    servers[0]!.isDown = servers[1]!.isDown = true;
    await takeFor(6);
    expect(warnings.map((warning) => warning.slice(0, 10))).toEqual(['The node a', 'The node b']);
  });
});
