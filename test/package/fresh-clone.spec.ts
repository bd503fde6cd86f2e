import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Copy } from '../support/package/copy.js';
import { guardFolder } from '../support/process-guard.js';
import { execute, npm } from '../support/package/command.js';
import { INSTALL_TIMEOUT_MS } from './support/consumer-app.js';
import { packLibrary, type Tarball } from '../support/package/pack.js';

describe('a fresh clone', () => {
  let folder: string;
  let tarball: Tarball;
  let clone: Copy;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nest-redis-lock-packed-'));
    guardFolder(folder);
    // First of all: it sees to it that node_modules, to which the copy has a link, need no npm ci.
    tarball = await packLibrary(folder);
    clone = await Copy.of('.');
  }, INSTALL_TIMEOUT_MS);
  afterAll(async () => {
    await clone[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  it(
    'packs the whole library with npm pack alone: prepack builds it',
    async () => {
      expect(await readdir(clone.folder)).not.toContain('dist');
      const destination = join(folder, 'fresh');
      await mkdir(destination);
      // What the user has set up for npm does not count, only what the repository has.
      const env = { npm_config_userconfig: join(folder, 'none'), npm_config_ignore_scripts: undefined };
      const options = { cwd: clone.folder, env, timeoutMs: INSTALL_TIMEOUT_MS };
      await npm(['pack', '--pack-destination', destination], options);
      const [file] = await readdir(destination);
      const { stdout } = await execute('tar', ['-tzf', join(destination, file!)], {
        cwd: folder,
        timeoutMs: 20_000,
      });
      const paths = stdout
        .trim()
        .split('\n')
        .map((path) => path.replace(/^package\//, ''));
      expect(paths.sort()).toEqual(tarball.paths);
    },
    INSTALL_TIMEOUT_MS,
  );
});
