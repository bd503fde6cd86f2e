import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { guardProcess } from '../support/process-guard.js';
import { describeStoreContract } from './store.contract.js';
import { STORES } from './stores.js';

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

it('every store of the library is under contract', () => {
  const folders = readdirSync(path('../../lib/stores'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);
  expect(folders.length).toBeGreaterThan(0);
  expect([...new Set(STORES.map(({ folder }) => folder))].sort()).toEqual(folders.sort());
});

for (const { name, makeHarness } of STORES) describeStoreContract(name, makeHarness);

describe('a process that closed its store', () => {
  it.each(STORES)('exits by itself, at once ($name)', async ({ name, makeHarness }) => {
    const harness = await makeHarness();
    const child = spawn(
      process.execPath,
      [
        '--import',
        path('../support/typescript/register.mjs'),
        path('closing.process.ts'),
        name,
        harness.address ?? '',
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    guardProcess(child);
    const exit = once(child, 'exit');
    const [said] = (await Promise.race([once(child.stdout, 'data'), exit])) as [unknown];
    expect(String(said)).toBe('closed\n');
    const closedAt = performance.now();
    const ended = await exit;
    const tookMs = performance.now() - closedAt;
    await harness.cleanup();
    expect(ended).toEqual([0, null]);
    expect(tookMs).toBeLessThan(1_000);
  });
});
