import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { node } from '../support/package/command.js';
import { repository } from '../support/package/pack.js';
import { guardFolder } from '../support/process-guard.js';

/** The message of a command that has to fail: it has what the command printed. */
const failureOf = (running: Promise<unknown>): Promise<string> =>
  running.then(
    () => 'did not fail',
    (error: Error) => error.message,
  );

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nest-redis-lock-matrix-'));
  guardFolder(folder);
  // Without node_modules: nothing has been downloaded yet.
  await cp(join(repository, '.ci'), join(folder, '.ci'), { recursive: true });
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const script = async (name: string, ...args: readonly string[]): Promise<string> => {
  const options = { cwd: folder, env: { PATH: '' }, timeoutMs: 20_000 };
  return (await node([`.ci/${name}`, ...args], options)).stdout;
};

describe('npm run test:matrix', () => {
  it('has a row for each version that the package says it works with', async () => {
    const rows = await script('matrix.mjs', '--list');
    for (const node of [20, 22, 24, 26]) expect(rows).toContain(`node-${node} `);
    const manifest = JSON.parse(await readFile(join(repository, 'package.json'), 'utf8')) as {
      peerDependencies: Record<string, string>;
    };
    for (const [name, peer] of Object.entries({ nest: '@nestjs/core', ioredis: 'ioredis' })) {
      const majors = [...manifest.peerDependencies[peer]!.matchAll(/\^(\d+)\./g)].map(([, major]) => major);
      expect(majors.length).toBeGreaterThan(1);
      for (const major of majors) expect(rows).toContain(`${name}-${major} `);
    }
  });

  it('refuses a row that there is not, and names those there are', async () => {
    const said = await failureOf(script('matrix.mjs', '--only', 'node-22,node-23'));
    expect(said).toMatch(/no row node-23; there are .*\bnode-22\b/);
  });

  it('says in one line why a row cannot run here, counts it as nothing, and fails when no row ran', async () => {
    const said = await failureOf(
      script('matrix.mjs', '--only', 'valkey-9.1', `--report=${folder}/matrix.json`),
    );
    expect(said).toMatch(/^valkey-9.1: not run: .+$/m);
    expect(said).toContain('matrix: 0 passed, 0 failed, in 0 rows');
    const report = JSON.parse(await readFile(join(folder, 'matrix.json'), 'utf8')) as object;
    expect(report).toMatchObject({
      passed: 0,
      failed: 0,
      notRun: expect.stringMatching(/^matrix: not run: valkey-9\.1 \(.+\)$/),
    });
  });

  it('begins no row after its minutes are over', async () => {
    const said = await failureOf(script('matrix.mjs', '--only', 'valkey-9.1,node-22', '--minutes=0'));
    expect(said).toContain(
      'not run: valkey-9.1 (no time left of 0 minutes); node-22 (no time left of 0 minutes)',
    );
  });

  it('fails when tests run on something else than the row is about', async () => {
    const vitest = join(repository, 'node_modules', 'vitest', 'vitest.mjs');
    const env = { TEST_VERSIONS: JSON.stringify({ node: '1.2.3' }) };
    const options = { cwd: repository, env, timeoutMs: 25_000 };
    const said = await failureOf(
      node([vitest, 'run', 'test/repository/versions.spec.ts', '-t', 'Node'], options),
    );
    expect(said).toMatch(/expected .* to be '1\.2\.3'/);
  });
});
