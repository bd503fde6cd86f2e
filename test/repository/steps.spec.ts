import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { node } from '../support/package/command.js';
import { readManifest, repository } from '../support/package/pack.js';
import { guardFolder } from '../support/process-guard.js';

/** What a script of package.json writes as its report, and its exit code. */
interface Played {
  readonly report?: unknown;
  readonly code?: number;
}

const tests = (...statuses: readonly string[]): unknown => ({
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
const passing = { report: tests('passed', 'passed') };
const counted = (passed: number, failed = 0, rest: object = {}): Played => ({
  report: { passed, failed, ...rest },
  code: failed > 0 ? 1 : 0,
});

const RUN: Readonly<Record<string, Played>> = {
  check: counted(8),
  test: passing,
  'test:gate': passing,
  'test:model': counted(5),
};
const NIGHTLY: Readonly<Record<string, Played>> = {
  'test:faults': {},
  'test:fast': passing,
  'test:matrix': counted(30),
  'test:interop': counted(7),
  'test:mistakes': passing,
  'test:overload': passing,
  'test:sale': passing,
  'test:laboratory': passing,
  'test:installs': passing,
  'test:simulation': {},
  'test:seeds': passing,
  'test:model': counted(60),
  'test:settings': {},
  'test:soak': {},
};

/** Stands in for npm: notes which script ran, with which PATH, writes the report that is played, and ends. */
const PLAYER = `
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
const [, , name, ...args] = process.argv.slice(2);
appendFileSync('ran', JSON.stringify({ name, args, path: process.env.PATH }) + '\\n');
const { report, code = 0 } = JSON.parse(readFileSync('played.json', 'utf8'))[name];
const file = args.map((arg) => /^--(?:report|outputFile[.]json)=(.*)$/.exec(arg)?.[1]).find(Boolean);
if (report !== undefined && file) writeFileSync(file, JSON.stringify(report));
process.exitCode = code;
`;

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nest-redis-lock-steps-'));
  guardFolder(folder);
  await cp(join(repository, '.ci'), join(folder, '.ci'), { recursive: true });
  await writeFile(join(folder, 'npm-cli.mjs'), PLAYER);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const steps = async (played: object, ...args: readonly string[]): Promise<string> => {
  await writeFile(join(folder, 'played.json'), JSON.stringify(played));
  return (
    await node(['.ci/steps.mjs', ...args], {
      cwd: folder,
      env: { npm_execpath: join(folder, 'npm-cli.mjs') },
      timeoutMs: 20_000,
    })
  ).stdout;
};

/** The message of a command that has to fail: it has what the command printed. */
const failureOf = (running: Promise<unknown>): Promise<string> =>
  running.then(
    () => 'did not fail',
    (error: Error) => error.message,
  );

const ran = async (): Promise<readonly { name: string; args: readonly string[]; path: string }[]> => {
  const lines = (await readFile(join(folder, 'ran'), 'utf8')).trim().split('\n');
  return lines.map((line) => JSON.parse(line) as { name: string; args: readonly string[]; path: string });
};
const namesRan = async (): Promise<readonly string[]> => (await ran()).map(({ name }) => name);

describe('.ci/run', () => {
  it('runs the checks, all tests, the gate and the short models, and adds them up', async () => {
    expect(await steps(RUN, 'run')).toMatch(/\n17 passed, 0 failed\n$/);
    expect(await namesRan()).toEqual(['check', 'test', 'test:gate', 'test:model']);
    expect((await ran())[3]!.args).toContain('--short');
  });

  it('says in one line what did not run', async () => {
    const played = { ...RUN, 'test:model': counted(0, 0, { notRun: 'model: did not run: no spin' }) };
    expect(await steps(played, 'run')).toContain('\nnot run: model: did not run: no spin\n');
  });

  it('runs every step also after one has failed, and names at its end what failed, with its message', async () => {
    const played = {
      ...RUN,
      check: counted(7, 1, { failures: ['deps'] }),
      test: { report: tests('passed', 'failed'), code: 1 },
    };
    const said = await failureOf(steps(played, 'run'));
    expect(said).toContain('FAILED in check: deps\n');
    expect(said).toContain('FAILED in tests: test 1\n  expected 1 to be 2\n');
    expect(said).toMatch(/^15 passed, 2 failed$/m);
    expect(await namesRan()).toHaveLength(4);
  });

  it('shows of a failure what was found and where, without frames of the test runner and endless lines', async () => {
    const message = `${'a'.repeat(5_000)}\n    at f (/somewhere/node_modules/runner.js:1:1)\n    at test/one.spec.ts:2:2`;
    const said = await failureOf(steps({ ...RUN, check: counted(7, 1, { failures: [message] }) }, 'run'));
    expect(said).toContain(`FAILED in check: ${'a'.repeat(1_000)}\n      at test/one.spec.ts:2:2\n`);
  });

  it.each([
    ['a test did not run', { ...RUN, test: { report: tests('passed', 'skipped') } }],
    ['a test of the gate did not run', { ...RUN, 'test:gate': { report: tests('passed', 'skipped') } }],
    ['the tests failed in no test', { ...RUN, test: { ...passing, code: 1 } }],
    ['no test ran', { ...RUN, test: { report: tests() } }],
    ['the tests left no report', { ...RUN, test: { code: 1 } }],
    ['the checks left no report', { ...RUN, check: {} }],
    ['a step failed although its report counts no failure', { ...RUN, check: { ...RUN['check'], code: 1 } }],
    ['a deliberate mistake is not seen by the model', { ...RUN, 'test:model': counted(4, 1) }],
  ])('fails when %s', async (_what, played) => {
    expect(await failureOf(steps(played, 'run'))).toMatch(/^\d+ passed, 1 failed$/m);
  });

  describe('with --since', () => {
    const git = (...args: readonly string[]): Promise<unknown> =>
      promisify(execFile)('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.invalid', ...args], {
        cwd: folder,
      });
    const commit = async (file: string): Promise<void> => {
      await writeFile(join(folder, file), 'x');
      await git('add', '--force', file);
      await git('commit', '--quiet', '--no-verify', '-m', 'test: x');
    };

    beforeEach(async () => {
      await git('init', '--quiet');
      await commit('README.md');
    });

    it('runs the checks and the tests of documents when only documents have changed', async () => {
      await commit('CHANGELOG.md');
      await steps(RUN, 'run', '--since=HEAD~1');
      expect(await namesRan()).toEqual(['check', 'test']);
      expect((await ran())[1]!.args).toContain('test/docs');
    });

    it.each([
      ['a source has changed, too', '--since=HEAD~1'],
      ['the commit is not known here', '--since=0000000000000000000000000000000000000000'],
    ])('runs everything when %s', async (_what, since) => {
      await commit('source.ts');
      await steps(RUN, 'run', since);
      expect(await namesRan()).toHaveLength(4);
    });
  });
});

describe('.ci/nightly', () => {
  it('runs what takes too long for each change, all models among it', async () => {
    expect(await steps(NIGHTLY, 'nightly')).toMatch(/\n115 passed, 0 failed\n$/);
    expect(await namesRan()).toEqual(Object.keys(NIGHTLY));
    expect((await ran()).find(({ name }) => name === 'test:model')!.args).not.toContain('--short');
  });

  it('gives the fast tests a PATH without servers', async () => {
    await steps(NIGHTLY, 'nightly');
    const fast = (await ran()).find(({ name }) => name === 'test:fast')!;
    expect(fast.path).toContain('nest-redis-lock-steps-');
    expect(fast.path.split(delimiter)).toHaveLength(1);
  });

  it('fails when the laboratory does, which has no report', async () => {
    const said = await failureOf(steps({ ...NIGHTLY, 'test:faults': { code: 1 } }, 'nightly'));
    expect(said).toContain('FAILED in laboratory: npm run test:faults ended with 1\n');
    expect(said).toMatch(/^114 passed, 1 failed$/m);
  });

  it('hands --strict to the matrix', async () => {
    await steps(NIGHTLY, 'nightly', '--strict');
    expect((await ran()).filter(({ args }) => args.includes('--strict')).map(({ name }) => name)).toEqual([
      'test:matrix',
    ]);
  });
});

it('each step is a script of package.json', async () => {
  const { scripts } = await readManifest();
  expect(Object.keys(scripts)).toEqual(expect.arrayContaining(Object.keys({ ...RUN, ...NIGHTLY })));
});
