// npm run bench:scale -- [--only part,part] [--sizes 10,100] [--seed n] [--write]
//
// Measures what grows with processes, callers, keys and holds, on virtual time: each figure is counted at a real server.
// The same seed gives the same tables. With --write they go into docs/operations/scale.md.
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { measureCluster } from './cluster.js';
import { measureOneKey } from './one-key.js';
import { writePage } from './page.js';
import { measureWaiting } from './waiting.js';
import { markdownOf, type Table } from './table.js';

const PAGE = fileURLToPath(new URL('../../../docs/operations/scale.md', import.meta.url));

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    sizes: { type: 'string' },
    seed: { type: 'string', default: '1' },
    write: { type: 'boolean', default: false },
  },
});
const seed = Number(values.seed);
const sizes = values.sizes?.split(',').map(Number);

let violations = 0;
const oneKey = (kind: Parameters<typeof measureOneKey>[0]) => async (): Promise<readonly Table[]> => {
  const report = await measureOneKey(kind, seed, sizes);
  violations += report.violations;
  return [report.table];
};

const PARTS: Readonly<Record<string, () => Promise<readonly Table[]>>> = {
  exclusive: oneKey('exclusive'),
  fair: oneKey('fair'),
  'read-write': oneKey('read-write'),
  permit: oneKey('permit'),
  cluster: () => measureCluster(seed),
  waiting: () => measureWaiting(seed, sizes),
};

const written = new Map<string, readonly Table[]>();
for (const name of values.only?.split(',') ?? Object.keys(PARTS)) {
  const part = PARTS[name];
  if (!part) throw new Error(`there is no part "${name}"; there are ${Object.keys(PARTS).join(', ')}`);
  const cpu = process.cpuUsage();
  const tables = await part();
  written.set(name, tables);
  console.log(`${tables.map(markdownOf).join('\n\n')}\n`);
  const { user, system } = process.cpuUsage(cpu);
  process.stderr.write(`${name}: ${Math.round((user + system) / 1e6)} s of CPU time\n`);
}
if (values.write) await writePage(PAGE, written);
console.log(`Holders that should not have been there at once: ${violations}`);
process.exitCode = violations > 0 ? 1 : 0;
