import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { guardFolder } from '../support/process-guard.js';
import { execute } from '../support/package/command.js';
import { INSTALL_TIMEOUT_MS } from './support/consumer-app.js';
import {
  optionalPeers,
  packLibrary,
  readManifest,
  repository,
  type Tarball,
} from '../support/package/pack.js';

const MAX_DOWNLOAD_BYTES = 900_000;
const MAX_UNPACKED_BYTES = 5_400_000;

const sourcesOf = async (folder: string): Promise<readonly string[]> =>
  (await readdir(join(repository, folder), { recursive: true })).filter((path) => path.endsWith('.ts'));

/** The package that a specifier belongs to. */
const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');

describe('the tarball', () => {
  let folder: string;
  let tarball: Tarball;
  const contents = new Map<string, string>();

  /** The packages that files import, in whichever way. */
  const importedBy = (ending: string): readonly string[] => {
    const files = [...contents].filter(([path]) => path.endsWith(ending));
    expect(files).not.toEqual([]);
    const specifiers = files.flatMap(([, text]) =>
      ts.preProcessFile(text, true, true).importedFiles.map(({ fileName }) => fileName),
    );
    return [...new Set(specifiers.filter((name) => !name.startsWith('.')).map(packageOf))].sort();
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nest-redis-lock-tarball-'));
    guardFolder(folder);
    tarball = await packLibrary(folder);
    await execute('tar', ['-xzf', tarball.file], { cwd: folder, timeoutMs: 60_000 });
    for (const path of tarball.paths) {
      contents.set(path, await readFile(join(folder, 'package', path), 'utf8'));
    }
  }, INSTALL_TIMEOUT_MS);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('has both builds of every source, one set of declarations, manifest, readme and licence, and nothing else', async () => {
    const stems = (await sourcesOf('lib')).map((path) => path.slice(0, -'.ts'.length));
    const built = stems.flatMap((stem) => [
      ...[`dist/esm/${stem}.js`, `dist/esm/${stem}.js.map`],
      ...[`dist/cjs/${stem}.js`, `dist/cjs/${stem}.js.map`, `dist/cjs/${stem}.d.ts`],
    ]);
    const entries = ['dist/esm/index.d.ts', 'dist/esm/testing/index.d.ts', 'dist/cjs/package.json'];
    const expected = [...built, ...entries, 'package.json', 'README.md', 'LICENSE'];
    expect(tarball.paths).toEqual(expected.sort());
  });

  it('is small', () => {
    expect(tarball.size).toBeLessThan(MAX_DOWNLOAD_BYTES);
    expect(tarball.unpackedSize).toBeLessThan(MAX_UNPACKED_BYTES);
  });

  it('imports what its manifest declares, and only that', async () => {
    const { dependencies, peerDependencies } = await readManifest();
    const declared = Object.keys({ ...dependencies, ...peerDependencies });
    const imported = importedBy('.js').filter((name) => !isBuiltin(name));
    expect(imported).toEqual(expect.arrayContaining(['@nestjs/common', 'acorn', 'ioredis']));
    expect(imported.filter((name) => !declared.includes(name))).toEqual([]);
  });

  it('has declarations that need no optional peer', async () => {
    const optional = await optionalPeers();
    const imported = importedBy('.d.ts');
    expect(imported).toContain('@nestjs/common');
    expect(imported.filter((name) => optional.includes(name))).toEqual([]);
  });

  it('can be debugged: the maps carry the sources, and no path of the machine that built it is in it', () => {
    for (const [path, text] of contents) {
      expect(text.includes(repository), `${path} names ${repository}`).toBe(false);
      if (!path.endsWith('.map')) continue;
      const { sources, sourcesContent } = JSON.parse(text) as {
        sources: string[];
        sourcesContent?: string[];
      };
      expect(sources, path).toEqual([expect.stringMatching(/^(\.\.\/)+lib\/.*\.ts$/)]);
      expect(sourcesContent?.[0], path).toBeTruthy();
    }
  });
});
