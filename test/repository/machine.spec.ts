import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
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
    expect(scripts['test']).toMatch(/^node \.ci\/machine\.mjs && /);
    expect(scripts['test:fast']).not.toMatch(/machine|--build/);
  });
});
