import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { execute } from '../support/package/command.js';
import { repository } from '../support/package/pack.js';

const PROVIDE = join(repository, '.ci', 'matrix', 'provide.mjs');
const TIMEOUT_MS = 60_000;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nest-redis-lock-provided-'));
  await mkdir(join(folder, 'tool'));
  await writeFile(join(folder, 'tool', 'package.json'), JSON.stringify({ name: 'tool', version: '1.2.3' }));
});
afterAll(() => rm(folder, { recursive: true }));

it('several processes that need the same download at once all get it', { timeout: TIMEOUT_MS }, async () => {
  const dependencies = JSON.stringify({ tool: `file:${join(folder, 'tool')}` });
  const program = `import { packages } from ${JSON.stringify(PROVIDE)};
    console.log(JSON.stringify(packages('test-only', ${dependencies})));`;
  const get = async (): Promise<unknown> => {
    const args = ['--input-type=module', '--eval', program];
    const { stdout } = await execute(process.execPath, args, { cwd: folder, timeoutMs: TIMEOUT_MS });
    return JSON.parse(stdout);
  };
  const provided = (await Promise.all([get(), get(), get()])) as { env: { TEST_PACKAGES: string } }[];
  const [first] = provided;
  try {
    expect(provided).toEqual(provided.map(() => first));
    expect(first).toMatchObject({ versions: { tool: '1.2.3' } });
  } finally {
    if (first) await rm(first.env.TEST_PACKAGES, { recursive: true, force: true });
  }
});
