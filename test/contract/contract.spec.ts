import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { KINDS } from '../../lib/core/kinds/kinds.js';
import { STORES, STORES_IN_MEMORY } from '../support/stores/stores.js';
import { KIND_CONTRACTS } from './kinds/index.js';
import { describeStores } from './stores.contract.js';

it('every store of the library is under contract', () => {
  // Folders of what stores share: `load`, and `sql` for the databases.
  const folders = readdirSync(new URL('../../lib/stores', import.meta.url), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !['load', 'sql'].includes(entry.name))
    .map((entry) => entry.name);
  expect(folders.length).toBeGreaterThan(0);
  expect([...new Set(STORES.map(({ folder }) => folder))].sort()).toEqual(folders.sort());
});

it('every kind has a contract', () => {
  expect(Object.keys(KIND_CONTRACTS).sort()).toEqual(Object.keys(KINDS).sort());
  for (const [kind, { under }] of Object.entries(KIND_CONTRACTS)) expect(under.kind).toBe(kind);
});

describeStores(STORES_IN_MEMORY);
