import { readdirSync } from 'node:fs';
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

const MAX_DOWNLOAD_BYTES = 475_000;
const MAX_UNPACKED_BYTES = 1_870_000;
const MAX_FILES = 130;
/** Documents that are not packed: for authors, for moving over, for operators, about Java, tables, and the site. */
const ON_THE_WEB =
  /^((\.site|api|benchmarks|decisions|migration|recipes)\/|operations\/(?!command|troubleshooting)|redisson-compatibility|(guide\/(builds|glossary)|stores\/writing-a-store)\.md$|pictures\/(cron|dashboard)\.svg$)/;

const folders = (path: string): readonly string[] =>
  readdirSync(join(repository, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);

/** Entry points: `lib/index.ts` and the files of `lib/entries/`. */
const ENTRIES = [
  'index',
  ...readdirSync(join(repository, 'lib/entries')).map((name) => name.replace(/\.ts$/, '')),
];
const STORES = folders('lib/stores');
/** Layers without Nest, beside the stores: what several entry points need, and what only one of them needs. */
const LAYERS = ['core', 'common', 'fencing', 'opentelemetry', 'testing'];
/** Files of the Nest layer in each build: the entry points, and their common file. */
const LAYER = [...ENTRIES, 'nest'];

const filesIn = async (folder: string, ending: string): Promise<readonly string[]> =>
  (await readdir(join(repository, folder), { recursive: true })).filter((path) => path.endsWith(ending));

/** The package that a specifier belongs to. */
const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');

/** The names of the classes that a file declares, as `class Name {}` or as `Name = class {}`. */
const classNames = (text: string): readonly string[] =>
  [...text.matchAll(/\bclass (?!extends\b)([\w$]+)|([\w$]+) = class(?: extends| \{)/g)].map(
    ([, one, other]) => (one ?? other)!,
  );

describe('the tarball', () => {
  let folder: string;
  let tarball: Tarball;
  const contents = new Map<string, string>();

  /** The packages that files import, in whichever way. */
  const importedBy = (ending: string, without = (text: string) => text): readonly string[] => {
    const files = [...contents].filter(([path]) => path.endsWith(ending));
    expect(files).not.toEqual([]);
    const specifiers = files.flatMap(([, text]) =>
      ts.preProcessFile(without(text), true, true).importedFiles.map(({ fileName }) => fileName),
    );
    return [...new Set(specifiers.filter((name) => !name.startsWith('.')).map(packageOf))].sort();
  };

  /** The files of the tarball that are loaded with some of them, these included: what they import, and so on. */
  const loadedBy = (...paths: readonly string[]): readonly string[] => {
    const found = new Set(paths);
    for (const path of found) {
      const { importedFiles } = ts.preProcessFile(contents.get(path) ?? '', true, true);
      for (const { fileName } of importedFiles) {
        if (!fileName.startsWith('.')) continue;
        const target = join(dirname(path), fileName);
        found.add(path.endsWith('.d.ts') ? target.replace(/\.js$/, '.d.ts') : target);
      }
    }
    return [...found].sort();
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

  it('has one core, the Nest layer of both builds, the command, one set of declarations, documents for users, and nothing else', async () => {
    const built = [
      ...[...LAYERS, ...STORES].flatMap((name) => [`dist/core/${name}.cjs`, `dist/core/${name}-names.cjs`]),
      ...LAYER.flatMap((name) => [`dist/esm/${name}.js`, `dist/cjs/${name}.js`]),
      ...ENTRIES.map((name) => `dist/esm/${name}.d.ts`),
      ...['cjs', 'types'].map((folder) => `dist/${folder}/package.json`),
      ...['dist/cjs/rolldown-runtime.js', 'dist/esm/cli.js'],
    ];
    const declarations = loadedBy(...ENTRIES.map((name) => `dist/esm/${name}.d.ts`));
    const statements = await filesIn('docs', '.sql');
    const pages = [
      ...(await filesIn('docs', '.md')),
      ...statements,
      'llms.txt',
      ...(await filesIn('docs', '.svg')),
    ].filter((path) => !ON_THE_WEB.test(path));
    const expected = [
      ...[...built, ...declarations, 'package.json'],
      ...[
        'README.md',
        'README.zh-CN.md',
        'CHANGELOG.md',
        'SECURITY.md',
        'LICENSE',
        ...pages.map((path) => `docs/${path}`),
      ],
    ];
    expect(tarball.paths).toEqual([...new Set(expected)].sort());
  });

  it('is small', () => {
    expect(tarball.size).toBeLessThan(MAX_DOWNLOAD_BYTES);
    expect(tarball.unpackedSize).toBeLessThan(MAX_UNPACKED_BYTES);
    expect(tarball.paths.length).toBeLessThanOrEqual(MAX_FILES);
  });

  it('is imported fast: index loads the stores on Redis and what all stores on servers share, and only testing loads the memory store', () => {
    for (const build of ['esm', 'cjs']) {
      const loads = (
        entry: string,
        core: readonly string[],
        layer: readonly string[],
        named = core,
      ): void => {
        const files = [
          ...core.map((name) => `dist/core/${name}.cjs`),
          ...(build === 'esm' ? named.map((name) => `dist/core/${name}-names.cjs`) : []),
          ...layer.map((name) => `dist/${build}/${name}.js`),
        ];
        expect(loadedBy(`dist/${build}/${entry}.js`)).toEqual(files.sort());
      };
      const runtime = build === 'cjs' ? ['rolldown-runtime'] : [];
      const named = ['common', 'core', 'redis'];
      loads('index', [...named, 'load'], ['index', 'nest', 'redis', ...runtime], named);
      loads('testing', ['common', 'core', 'memory', 'testing'], ['testing', 'nest', ...runtime]);
      loads('fencing', ['core', 'fencing'], ['fencing'], ['fencing']);
      loads('redis', ['core', 'load', 'redis'], ['redis'], ['redis']);
      loads('mysql', ['core', 'load', 'mysql', 'sql'], ['mysql'], ['mysql']);
      loads('postgres', ['core', 'load', 'postgres', 'sql'], ['postgres'], ['postgres']);
      loads('zookeeper', ['core', 'load', 'zookeeper'], ['zookeeper'], ['zookeeper']);
      loads('opentelemetry', ['core', 'opentelemetry'], ['opentelemetry'], ['opentelemetry']);
      loads('store', ['core'], ['store']);
    }
  });

  it('is imported without acorn, which is loaded with the first name of a parameter', async () => {
    const script = [
      "const { Locked } = require('./dist/cjs/index.js');",
      "const loaded = () => Object.keys(require.cache).filter((file) => file.includes('/acorn/')).length;",
      'const before = loaded();',
      'class Shop { sell(item) {} }',
      "Locked('sku:<<item>>')(Shop.prototype, 'sell', Object.getOwnPropertyDescriptor(Shop.prototype, 'sell'));",
      'console.log(before, loaded());',
    ];
    const { stdout } = await execute(process.execPath, ['-e', script.join('\n')], {
      cwd: repository,
      timeoutMs: 60_000,
    });
    expect(stdout.trim()).toMatch(/^0 [1-9]/);
  });

  it('imports what its manifest declares, and only that', async () => {
    const { dependencies, peerDependencies } = await readManifest();
    const declared = Object.keys({ ...dependencies, ...peerDependencies });
    const imported = [...importedBy('.js'), ...importedBy('.cjs')].filter((name) => !isBuiltin(name));
    expect(imported).toEqual(expect.arrayContaining(['@nestjs/common', 'acorn', 'ioredis']));
    expect(imported.filter((name) => !declared.includes(name))).toEqual([]);
  });

  it('has declarations that need no optional peer: without ioredis its types are any', async () => {
    const optional = await optionalPeers();
    const imported = importedBy('.d.ts', (text) => text.replaceAll(/^\/\/ @ts-ignore: .*\n.*$/gm, ''));
    expect(imported).toContain('@nestjs/common');
    expect(imported.filter((name) => optional.includes(name))).toEqual([]);
  });

  it.each(['store', 'redis', 'mysql', 'postgres', 'zookeeper'])(
    'has declarations of %s that need no Nest, as its JavaScript',
    (entry) => {
      const files = loadedBy(`dist/esm/${entry}.d.ts`, `dist/esm/${entry}.js`);
      expect(files.filter((path) => /['"](@nestjs\/|rxjs)/.test(contents.get(path)!))).toEqual([]);
    },
  );

  it('can be debugged without source maps: it is not minified, and classes keep the names of their sources', async () => {
    const sources = await filesIn('lib', '.ts');
    const texts = await Promise.all(sources.map((path) => readFile(join(repository, 'lib', path), 'utf8')));
    const inSources = new Set(texts.flatMap(classNames));
    const code = [...contents].filter(([path]) => /\.c?js$/.test(path));
    for (const [path, text] of code) {
      expect(text, path).not.toContain('sourceMappingURL');
      expect(text.length / text.split('\n').length, `characters in a line of ${path}`).toBeLessThan(100);
      expect(classNames(text).filter((name) => !inSources.has(name))).toEqual([]);
    }
    const found = code.flatMap(([, text]) => classNames(text));
    expect(found).toEqual(
      expect.arrayContaining(['LockManager', 'LockService', 'MemoryStore', 'RedisStore']),
    );
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
