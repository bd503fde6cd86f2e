import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deadLinks } from '../support/links.js';
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

const MAX_DOWNLOAD_BYTES = 850_000;
const MAX_UNPACKED_BYTES = 5_400_000;

const filesIn = async (folder: string, ending: string): Promise<readonly string[]> =>
  (await readdir(join(repository, folder), { recursive: true })).filter((path) => path.endsWith(ending));

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

  it('has every source, both builds of it, one set of declarations, the documents for users, and nothing else', async () => {
    const sources = await filesIn('lib', '.ts');
    const stems = sources.map((path) => path.slice(0, -'.ts'.length));
    const built = stems.flatMap((stem) => [
      ...[`dist/esm/${stem}.js`, `dist/esm/${stem}.js.map`],
      ...[`dist/cjs/${stem}.js`, `dist/cjs/${stem}.js.map`, `dist/cjs/${stem}.d.ts`],
    ]);
    const entries = [
      ...['', 'redis/', 'store/', 'testing/'].map((folder) => `dist/esm/${folder}index.d.ts`),
      'dist/cjs/package.json',
    ];
    const pages = [...(await filesIn('docs', '.md')), 'one-lock.svg'].filter(
      (path) => !/^((api|benchmarks|decisions)\/|redisson-compatibility\.md$)/.test(path),
    );
    const expected = [
      ...[...sources.map((path) => `lib/${path}`), ...built, ...entries, 'package.json'],
      ...['README.md', 'CHANGELOG.md', 'SECURITY.md', 'LICENSE', ...pages.map((path) => `docs/${path}`)],
    ];
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

  it('can be debugged: every map leads to its source in the tarball', () => {
    const astray = [...contents].filter(([path, text]) => {
      if (!path.endsWith('.map')) return false;
      const { sources } = JSON.parse(text) as { readonly sources: readonly string[] };
      const source = path.replace(/^dist\/(?:esm|cjs)\/(.*)\.js\.map$/, 'lib/$1.ts');
      return sources.map((name) => join(dirname(path), name)).join() !== source || !contents.has(source);
    });
    expect(astray.map(([path]) => path)).toEqual([]);
  });

  it('names no path of the machine that built it', () => {
    for (const [path, text] of contents)
      expect(text.includes(repository), `${path} names ${repository}`).toBe(false);
  });

  it('has only links that lead somewhere in a folder of node_modules', () => {
    const documents = tarball.paths.filter((path) => path.endsWith('.md'));
    const root = join(folder, 'package');
    expect(documents.flatMap((path) => deadLinks(root, path).map((link) => `${path}: ${link}`))).toEqual([]);
  });
});
