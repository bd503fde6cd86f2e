import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { KINDS } from '../../lib/core/kinds/kinds.js';
import { guardProcess } from '../support/process-guard.js';
import type { StoreUnderContract } from '../support/stores/stores.js';
import { describeStoreContract } from './store.contract.js';

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

const expectExitAtOnce = async (name: string, address = ''): Promise<void> => {
  const register = path('../support/typescript/register.mjs');
  const args = ['--import', register, path('closing.process.ts'), name, address];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  guardProcess(child);
  const exit = once(child, 'exit');
  const [said] = (await Promise.race([once(child.stdout, 'data'), exit])) as [unknown];
  expect(String(said)).toBe('closed\n');
  const closedAt = performance.now();
  expect(await exit).toEqual([0, null]);
  expect(performance.now() - closedAt).toBeLessThan(1_000);
};

/** The contract of stores, and what only their list can show: that each is there with every kind, and ends. */
export const describeStores = (stores: readonly StoreUnderContract[]): void => {
  const pairs = stores.flatMap(({ name, makeHarness, traits }) =>
    describeStoreContract(name, makeHarness, traits),
  );

  it('every kind is under contract on every store that has it, and a store under contract has every kind, or says which', () => {
    const kinds = Object.keys(KINDS).sort();
    const wanted = stores.flatMap(({ name, open, traits }) => {
      // Opens no connection before it is asked for something.
      const store = open();
      const has = Object.keys(store.kinds).sort();
      expect(has).toEqual([...(traits?.kinds ?? kinds)].sort());
      const hasObjects = traits?.hasObjects ?? true;
      expect([store.semaphores !== undefined, store.latches !== undefined]).toEqual([hasObjects, hasObjects]);
      return has.map((kind) => `${kind} on ${name}`);
    });
    expect([...pairs].sort()).toEqual(wanted.sort());
  });

  describe('a process that closed its store exits by itself, at once', () => {
    it.each(stores)('$name', async ({ name, makeHarness }) => {
      const harness = await makeHarness();
      try {
        await expectExitAtOnce(name, harness.address);
      } finally {
        await harness.cleanup();
      }
    });

    it.each(stores)('$name, also when its server is down', async ({ name, makeHarness }) => {
      const harness = await makeHarness();
      await harness.cleanup();
      await expectExitAtOnce(name, harness.address);
    });
  });
};
