import { chmod, cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { node } from '../support/package/command.js';
import { readManifest, repository } from '../support/package/pack.js';
import { guardFolder } from '../support/process-guard.js';

describe('npm run setup', () => {
  let folder: string;

  const machine = async (path: string, ...args: readonly string[]): Promise<string> => {
    const options = { cwd: repository, env: { PATH: path }, timeoutMs: 20_000 };
    const { stdout } = await node(['.ci/machine.mjs', ...args], options);
    return stdout;
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nest-redis-lock-machine-'));
    guardFolder(folder);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('says where it found what the tests need', async () => {
    const program = join(folder, 'valkey-server');
    await writeFile(program, '');
    await chmod(program, 0o755);
    expect(await machine(folder, '--dry-run')).toContain(`a Redis server: ${program}\n`);
    await rm(program);
  });

  it('says what is missing and what would be done about it, and with --dry-run does nothing', async () => {
    const apt = join(folder, 'apt-get');
    const ran = join(folder, 'ran');
    await writeFile(apt, `#!/bin/sh\n: > '${ran}'\n`);
    await chmod(apt, 0o755);
    // Without root it says what to install by hand; the exit code then tells that tests cannot run.
    const said = await machine(folder, '--dry-run').catch((error: Error) => error.message);
    expect(said).toContain('a Redis server: missing; most tests run against a real one');
    expect(said).toMatch(/apt-get install (-y --no-install-recommends )?redis-server/);
    await expect(rm(ran)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('fails with what to do by hand where it may not install', async () => {
    const nowhere = join(dirname(folder), 'nest-redis-lock-no-such-folder');
    await expect(machine(nowhere)).rejects.toThrow(/not installed.*install redis-server \(Debian and Ubuntu/);
  });

  it('comes before the tests of npm test, and is no part of the fast ones', async () => {
    const { scripts } = await readManifest();
    expect(scripts['setup']).toBe('node .ci/machine.mjs');
    expect(scripts['test']).toBe('node .ci/test.mjs');
    expect(scripts['test:fast']).not.toMatch(/machine|--build/);
  });
});

describe('the jars of ZooKeeper', () => {
  let folder: string;

  /** Fetches with a Maven that writes one jar and then ends. Returns where the jars are then. */
  const fetchWith = async (exitCode: number): Promise<string> => {
    const maven = `#!/bin/sh
for arg in "$@"; do case $arg in -DoutputDirectory=*) : > "\${arg#*=}/zookeeper.jar";; esac; done
exit ${exitCode}
`;
    await writeFile(join(folder, 'mvn'), maven);
    await chmod(join(folder, 'mvn'), 0o755);
    const script = `
      const { fetchZooKeeper, zookeeperClassPath } = await import('./.ci/zookeeper.mjs');
      try { fetchZooKeeper(); } catch (error) { console.log(error.message); }
      console.log(zookeeperClassPath());`;
    const options = { cwd: folder, env: { PATH: folder }, timeoutMs: 20_000 };
    return (await node(['--input-type=module', '--eval', script], options)).stdout;
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nest-redis-lock-zookeeper-'));
    guardFolder(folder);
    const isSource = (path: string): boolean => basename(path) !== 'target';
    await cp(join(repository, '.ci'), join(folder, '.ci'), { recursive: true, filter: isSource });
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('are found once Maven has fetched all of them', async () => {
    const failed = await fetchWith(1);
    expect(failed).toContain('mvn dependency:copy-dependencies in .ci/zookeeper failed with exit code 1');
    expect(failed).not.toContain(folder);
    const jars = (await fetchWith(0)).trim();
    expect(dirname(dirname(jars))).toBe(join(folder, '.ci', 'zookeeper', 'target'));
    expect(await readdir(dirname(jars))).toEqual(['zookeeper.jar']);
  });
});

describe('npm test on a machine without a Redis server that cannot be installed', () => {
  let folder: string;

  const program = async (name: string, source: string): Promise<void> => {
    await writeFile(join(folder, name), source);
    await chmod(join(folder, name), 0o755);
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nest-redis-lock-npm-test-'));
    guardFolder(folder);
    await cp(join(repository, '.ci'), join(folder, '.ci'), { recursive: true });
    for (const name of ['lib', 'sample-app/src/page', 'node_modules/.bin', 'node_modules/vitest'])
      await mkdir(join(folder, name), { recursive: true });
    const none = JSON.stringify({ exports: {}, bin: {}, packages: {} });
    for (const name of ['package.json', 'package-lock.json', 'node_modules/.package-lock.json'])
      await writeFile(join(folder, name), none);
    for (const name of ['tsconfig.json', 'nest-cli.json']) await writeFile(join(folder, name), '{}');
    for (const name of ['nest', 'tsc', 'rolldown']) await program(`node_modules/.bin/${name}`, '#!/bin/sh\n');
    await writeFile(join(folder, '.ci', 'declarations.mjs'), '');
    const vitest = `import { writeFileSync } from 'node:fs'; writeFileSync('ran', process.argv.slice(2).join(' '));`;
    await writeFile(join(folder, 'node_modules', 'vitest', 'vitest.mjs'), vitest);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('names it in one line, runs the tests that need no server, and fails at the end', async () => {
    const options = { cwd: folder, env: { PATH: join(folder, 'nothing') }, timeoutMs: 20_000 };
    const failure = await node(['.ci/test.mjs', '--reporter=dot'], options).catch((error: Error) => error);
    expect(failure).toBeInstanceOf(Error);
    const said = (failure as Error).message.split('\n');
    expect(said.filter((line) => line.startsWith('machine: a Redis server'))).toEqual([
      expect.stringMatching(/missing; .*; install redis-server/),
    ]);
    expect(said).toContain(
      'npm test failed: a Redis server is missing; only the tests that need no server ran',
    );
    expect(await readFile(join(folder, 'ran'), 'utf8')).toMatch(
      /^run --project fast --reporter=dot --reporter=\S+run-reporter[.]mjs$/,
    );
  });
});
