import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
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
      rows: [{ name: 'valkey-9.1', passed: 0, failed: 0 }],
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

describe('the last line of .ci/run', () => {
  const tests = (...statuses: readonly string[]) => ({
    testResults: [
      {
        name: 'a.spec.ts',
        status: statuses.includes('failed') ? 'failed' : 'passed',
        assertionResults: statuses.map((status, at) => ({
          status,
          fullName: `test ${at}`,
          failureMessages: status === 'failed' ? ['expected 1 to be 2'] : [],
        })),
      },
    ],
  });
  const failing = (message: string) => ({
    testResults: [
      {
        name: 'a.spec.ts',
        status: 'failed',
        assertionResults: [{ status: 'failed', fullName: 'test 0', failureMessages: [message] }],
      },
    ],
  });
  const CHECKS = [
    { name: 'types', passed: true },
    { name: 'lint', passed: true },
  ];
  const MATRIX = {
    rows: [{ name: 'node-22', passed: 30, failed: 0 }],
    notRun: 'matrix: not run: node-24 (why)',
  };

  const summary = async (
    checks: unknown,
    results: unknown,
    code: number,
    matrix: unknown,
    model: unknown = { passed: 5, failed: 0 },
    interop: unknown = { passed: 7, failed: 0 },
  ): Promise<string> => {
    await mkdir(join(folder, 'reports'), { recursive: true });
    const files = await Promise.all(
      Object.entries({ checks, results, matrix, model, interop }).map(async ([name, content]) => {
        const file = join(folder, 'reports', name);
        if (content !== undefined) await writeFile(file, JSON.stringify(content));
        return file;
      }),
    );
    return script('summary.mjs', files[0]!, files[1]!, String(code), files[2]!, files[3]!, files[4]!);
  };

  it('adds up checks, tests, matrix, model and the tests beside Redisson, and names what of it did not run', async () => {
    expect(await summary(CHECKS, tests('passed', 'passed', 'passed'), 0, MATRIX)).toBe(
      'matrix: not run: node-24 (why)\n47 passed, 0 failed\n',
    );
    const noSpin = { passed: 0, failed: 0, notRun: 'model: did not run: no spin' };
    expect(await summary(CHECKS, tests('passed'), 0, MATRIX, noSpin)).toContain(
      'model: did not run: no spin\n',
    );
    const noMaven = { passed: 0, failed: 0, notRun: 'test:interop did not run: no Maven' };
    expect(await summary(CHECKS, tests('passed'), 0, MATRIX, undefined, noMaven)).toBe(
      'matrix: not run: node-24 (why)\ntest:interop did not run: no Maven\n38 passed, 0 failed\n',
    );
  });

  it('names again at its end what failed, with as much as tells the failure', async () => {
    const checks = [...CHECKS, { name: 'deps', passed: false }];
    expect(await failureOf(summary(checks, tests('passed', 'failed'), 1, MATRIX))).toMatch(
      /^FAILED check: deps\nFAILED test: test 1\n {2}expected 1 to be 2$/m,
    );
    expect(await failureOf(summary(CHECKS, tests('passed'), 1, MATRIX))).toContain(
      'FAILED test: no test failed, of 1, but vitest ended with 1: see what it printed\n',
    );
  });

  it('shows of a failure what was found and where, not the frames of the test runner, and no line without end', async () => {
    const message = `${'a'.repeat(5_000)}\n    at f (/somewhere/node_modules/runner.js:1:1)\n    at test/one.spec.ts:2:2`;
    expect(await failureOf(summary(CHECKS, failing(message), 1, MATRIX))).toContain(
      `FAILED test: test 0\n  ${'a'.repeat(1_000)}\n      at test/one.spec.ts:2:2\n`,
    );
  });

  it.each([
    ['a check', [{ name: 'types', passed: false }], tests('passed'), 0, MATRIX],
    ['a test', CHECKS, tests('passed', 'failed'), 1, MATRIX],
    ['a test that did not run', CHECKS, tests('passed', 'skipped'), 0, MATRIX],
    ['a failure of no test', CHECKS, tests('passed'), 1, MATRIX],
    ['no test at all', CHECKS, tests(), 0, MATRIX],
    ['a row', CHECKS, tests('passed'), 0, { rows: [{ name: 'node-22', passed: 3, failed: 1 }], notRun: '' }],
    ['a matrix without a report', CHECKS, tests('passed'), 0, undefined],
    ['tests without a report', CHECKS, undefined, 1, MATRIX],
    ['a mistake that the model does not show', CHECKS, tests('passed'), 0, MATRIX, { passed: 4, failed: 1 }],
    ['a test beside Redisson', CHECKS, tests('passed'), 0, MATRIX, undefined, { passed: 6, failed: 1 }],
  ])(
    'is no success with %s',
    async (_what, checks, results, code, matrix, model?: unknown, interop?: unknown) => {
      expect(await failureOf(summary(checks, results, code, matrix, model, interop))).toMatch(
        /^\d+ passed, 1 failed$/m,
      );
    },
  );
});
