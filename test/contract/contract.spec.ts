import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { guardProcess } from '../support/process-guard.js';
import { KINDS } from '../../lib/core/kinds/kinds.js';
import { KIND_CONTRACTS } from './kinds/index.js';
import { describeStoreContract, PAIRS } from './store.contract.js';
import { STORES } from '../support/stores/stores.js';

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

it('every store of the library is under contract', () => {
  const folders = readdirSync(path('../../lib/stores'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);
  expect(folders.length).toBeGreaterThan(0);
  expect([...new Set(STORES.map(({ folder }) => folder))].sort()).toEqual(folders.sort());
});

for (const { name, makeHarness, traits } of STORES) describeStoreContract(name, makeHarness, traits);

it('every kind is under contract on every store that has it, and a store under contract has every kind, or says which', () => {
  const kinds = Object.keys(KINDS).sort();
  expect(Object.keys(KIND_CONTRACTS).sort()).toEqual(kinds);
  for (const [kind, { under }] of Object.entries(KIND_CONTRACTS)) expect(under.kind).toBe(kind);
  const wanted = STORES.flatMap(({ name, open, traits }) => {
    // Opens no connection before it is asked for something.
    const store = open('redis://127.0.0.1:1');
    const has = Object.keys(store.kinds).sort();
    expect(has).toEqual([...(traits?.kinds ?? kinds)].sort());
    return has.map((kind) => `${kind} on ${name}`);
  });
  expect([...PAIRS].sort()).toEqual(wanted.sort());
});

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

describe('a process that closed its store exits by itself, at once', () => {
  it.each(STORES)('$name', async ({ name, makeHarness }) => {
    const harness = await makeHarness();
    try {
      await expectExitAtOnce(name, harness.address);
    } finally {
      await harness.cleanup();
    }
  });

  it.each(STORES)('$name, also when its server is down', async ({ name, makeHarness }) => {
    const harness = await makeHarness();
    await harness.cleanup();
    await expectExitAtOnce(name, harness.address);
  });
});
