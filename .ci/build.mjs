// Builds the library and the sample app into dist/. docs/decisions/0008 describes the files of the library.
//
//   node .ci/build.mjs [lib] [app]     builds what is named; both by default
//
// The set-up script calls `buildIfChanged`, which builds only if a source has changed since the last build.
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { exclusively } from './exclusive.mjs';
import { root, tool } from './process.mjs';

const at = (...path) => join(root, ...path);
const STAMP = at('dist', '.built-from');
const SOURCES = [
  'lib',
  'sample-app',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'nest-cli.json',
  '.ci/build.mjs',
  '.ci/rolldown.config.mjs',
];
const RESULTS = [
  ...['core/core.cjs', 'esm/index.js', 'esm/index.d.ts', 'esm/cli.js', 'cjs/index.js', 'cjs/package.json'],
  ...['types/index.d.ts', 'types/package.json', 'sample-app/cli.js'],
].map((file) => at('dist', file));

const filesIn = (path) => {
  const entries = readdirSync(path, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  return entries.flatMap((entry) =>
    entry.isDirectory() ? filesIn(join(path, entry.name)) : [join(path, entry.name)],
  );
};

const digestOfSources = () => {
  const hash = createHash('sha256');
  const files = SOURCES.flatMap((name) =>
    statSync(at(name)).isDirectory() ? filesIn(at(name)) : [at(name)],
  );
  for (const file of files)
    hash.update(relative(root, file)).update('\0').update(readFileSync(file)).update('\0');
  return hash.digest('hex');
};

const FOLDERS = ['lib', 'core', 'esm', 'cjs', 'types'].map((folder) => at('dist', folder));
const COMMONJS = '{ "type": "commonjs" }\n';

const { bin, exports, peerDependenciesMeta = {} } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
const optionalPeers = Object.keys(peerDependenciesMeta).join('|');
const importOfPeer = new RegExp(`^import .* from '(${optionalPeers})(/[^']*)?';$`, 'gm');

/** Lets TypeScript compile an app that has no ioredis, for example, whose types are then `any`. */
const withoutPeers = (text) => text.replaceAll(importOfPeer, '// @ts-ignore: $1 is an optional peer.\n$&');

/** Copies a declaration file from dist/lib to dist/types, and the ones that it imports. */
const copyDeclarations = (file, copied) => {
  if (copied.has(file)) return;
  copied.add(file);
  const text = readFileSync(at('dist', 'lib', file), 'utf8');
  mkdirSync(at('dist', 'types', dirname(file)), { recursive: true });
  writeFileSync(at('dist', 'types', file), withoutPeers(text));
  for (const [, imported] of text.matchAll(/\b(?:from|import\()\s*['"](\.[^'"]*)\.js['"]/g))
    copyDeclarations(join(dirname(file), `${imported}.d.ts`), copied);
};

// Lets both builds share one set of declarations. A class with private members is a distinct type in every file that
// declares it. Otherwise a lock service or a lease of one build would not fit code compiled with the other.
const shareDeclarations = () => {
  const copied = new Set();
  for (const { import: esm, require: cjs } of Object.values(exports)) {
    if (!esm) continue;
    copyDeclarations(relative(at('dist', 'types'), at(cjs.types)), copied);
    const declarations = relative(dirname(esm.types), cjs.types).replace(/\.d\.ts$/, '.js');
    writeFileSync(at(esm.types), `export * from '${declarations}';\n`);
  }
};

const buildLib = () => {
  for (const folder of FOLDERS) rmSync(folder, { recursive: true, force: true });
  tool('tsc', '-p', 'lib/tsconfig.build.json');
  tool('rolldown', '--config', '.ci/rolldown.config.mjs', '--logLevel', 'warn');
  for (const command of Object.values(bin)) chmodSync(at(command), 0o755);
  for (const folder of ['cjs', 'types']) {
    mkdirSync(at('dist', folder), { recursive: true });
    writeFileSync(at('dist', folder, 'package.json'), COMMONJS);
  }
  shareDeclarations();
};

// Nest's CLI empties dist/sample-app itself (`deleteOutDir`).
const buildApp = () => tool('nest', 'build', 'sample-app');

const build = (parts) => {
  // Before the build: a source that changes meanwhile makes the next command build again.
  const digest = digestOfSources();
  rmSync(STAMP, { force: true });
  if (parts.includes('lib')) buildLib();
  if (parts.includes('app')) buildApp();
  if (parts.length < 2) return;
  mkdirSync(at('dist'), { recursive: true });
  writeFileSync(STAMP, digest);
};

const isBuilt = () =>
  existsSync(STAMP) &&
  RESULTS.every((file) => existsSync(file)) &&
  readFileSync(STAMP, 'utf8') === digestOfSources();

export const buildIfChanged = () => {
  if (isBuilt()) return;
  console.log('set-up: building the library and the sample app into dist/');
  build(['lib', 'app']);
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const named = process.argv.slice(2);
  const unknown = named.filter((part) => part !== 'lib' && part !== 'app');
  try {
    if (unknown.length > 0) throw new Error(`unknown part ${unknown.join(', ')}; there are lib and app`);
    await exclusively(() => build(named.length > 0 ? named : ['lib', 'app']));
  } catch (error) {
    console.error(`build: ${error.message}`);
    process.exitCode = 1;
  }
}
