import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { node } from '../../support/package/command.js';
import { packLibrary, repository } from '../../support/package/pack.js';
import { TestWorker } from '../../support/worker.js';
import type { FromFootprint, ToFootprint } from '../processes/footprint.process.js';
import type { Bench, Outcome, Workload } from '../workload.js';

const COUNT = 10_000;
const TIMEOUT_MS = 120_000;
/** An app loads them anyway. */
const BEFORE = ['reflect-metadata', '@nestjs/common', '@nestjs/core', 'ioredis'];

const importMs = async (): Promise<number> => {
  const script = [
    ...BEFORE.map((name) => `await import('${name}');`),
    'const before = performance.now();',
    "await import('nest-redis-lock');",
    'console.log(performance.now() - before);',
  ];
  const args = ['--input-type=module', '-e', script.join('\n')];
  const { stdout } = await node(args, { cwd: repository, timeoutMs: TIMEOUT_MS });
  return Number(stdout);
};

const packedBytes = async (): Promise<number> => {
  const folder = await mkdtemp(join(tmpdir(), 'nest-redis-lock-footprint-'));
  try {
    return (await packLibrary(folder)).size;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

/** What an app pays before it has done anything, and for each lock while nothing happens. */
export const footprint: Workload = {
  name: 'footprint',
  title: `Footprint: heap for each of ${COUNT.toLocaleString('en')} held locks and waiting callers, import, package`,
  async run({ server, progress, rounds }: Bench): Promise<Outcome> {
    progress.begin(this.title, rounds);
    const held: number[] = [];
    const waiter: number[] = [];
    const imported: number[] = [];
    for (let round = 0; round < rounds; round++) {
      await using worker = TestWorker.start<ToFootprint, FromFootprint>(
        new URL('../processes/footprint.process.ts', import.meta.url),
        { library: 'built' },
      );
      worker.send({ type: 'measure', url: server.url, count: COUNT });
      const { heldBytes, waiterBytes } = await worker.next('measured', { timeoutMs: TIMEOUT_MS });
      await worker.finish();
      held.push(heldBytes / 1_024);
      waiter.push(waiterBytes / 1_024);
      imported.push(await importMs());
      progress.step();
    }
    const packed = (await packedBytes()) / 1_000;
    return {
      findings: [
        { what: 'heap for a held lock', values: held, unit: 'kB', target: { atMost: 1.1 } },
        { what: 'heap for a waiting caller', values: waiter, unit: 'kB', target: { atMost: 2 } },
        { what: 'import after Nest and ioredis', values: imported, unit: 'ms', target: { atMost: 25 } },
        { what: 'package to download', values: [packed], unit: 'kB', target: { atMost: 450 } },
      ],
      violations: 0,
    };
  },
};
