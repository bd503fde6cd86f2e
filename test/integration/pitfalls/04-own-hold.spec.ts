import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ExclusiveClaim } from '../../../lib/core/seam/claim.js';
import { holdName, Lab, newKey } from '../scenarios/lab.js';

let lab: Lab;

beforeAll(async () => {
  lab = await Lab.start();
});

afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

const claimOf = (key: string, leaseMs: number): ExclusiveClaim => ({
  kind: 'exclusive',
  finalKey: holdName(key),
  owner: `owner-of-${key}:1`,
  leaseMs,
  tokens: 1,
  waits: false,
});

describe('pitfall 4: an acquire that finds its own hold', () => {
  it('re-arms it to the full lease, so that counting from the second send is right', async () => {
    const { store } = lab.open();
    const key = newKey();
    await store.kinds.exclusive.acquire(claimOf(key, 20_000));
    await lab.admin.pexpire(holdName(key), 3_000);
    const reply = await store.kinds.exclusive.acquire(claimOf(key, 20_000));
    expect(reply).toMatchObject({ status: 'granted', validForMs: 20_000 });
    expect(await lab.admin.pttl(holdName(key))).toBeGreaterThan(15_000);
  });

  it('brings a new, larger token: nobody can tell which answer was heard', async () => {
    const { store } = lab.open();
    const key = newKey();
    const tokens: number[] = [];
    for (let i = 0; i < 5; i += 1) {
      const reply = await store.kinds.exclusive.acquire(claimOf(key, 20_000));
      tokens.push((reply as { token: number }).token);
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    expect(tokens).toHaveLength(5);
  });

  it('leaves the count at 1: one release ends it', async () => {
    const { store } = lab.open();
    const key = newKey();
    const claim = claimOf(key, 20_000);
    await store.kinds.exclusive.acquire(claim);
    await store.kinds.exclusive.acquire(claim);
    expect(await lab.admin.hget(holdName(key), claim.owner)).toBe('1');
    expect(await store.kinds.exclusive.release(claim)).toMatchObject({ wasHeld: true });
    expect(await lab.admin.exists(holdName(key))).toBe(0);
  });
});
