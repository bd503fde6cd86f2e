// Builds the library and the sample app into dist/. docs/decisions/0008 describes the files of the library.
//
//   node .ci/build.mjs [lib] [app]     builds what is named; both by default
//
// The set-up script calls `buildIfChanged`, which builds only if a source has changed since the last build.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
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
  '.ci/declarations.mjs',
  '.ci/rolldown.config.mjs',
];
const RESULTS = [
  ...['core/core.cjs', 'esm/index.js', 'esm/index.d.ts', 'esm/cli.js', 'cjs/index.js', 'cjs/package.json'],
  ...['types/index.d.ts', 'types/package.json', 'sample-app/cli.js', 'sample-app/page/page.js'],
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

const { bin } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
const buildLib = () => {
  for (const folder of FOLDERS) rmSync(folder, { recursive: true, force: true });
  tool('tsc', '-p', 'lib/tsconfig.build.json');
  tool('rolldown', '--config', '.ci/rolldown.config.mjs', '--logLevel', 'warn');
  for (const command of Object.values(bin)) chmodSync(at(command), 0o755);
  for (const folder of ['cjs', 'types']) {
    mkdirSync(at('dist', folder), { recursive: true });
    writeFileSync(at('dist', folder, 'package.json'), COMMONJS);
  }
  execFileSync(process.execPath, [at('.ci', 'declarations.mjs')], { stdio: 'inherit' });
};

// Nest's CLI empties dist/sample-app itself (`deleteOutDir`). The page runs in a browser, so it has a tsconfig of its own.
const buildApp = () => {
  tool('nest', 'build', 'sample-app');
  const page = at('sample-app', 'src', 'page');
  tool('tsc', '-p', page);
  for (const name of readdirSync(page).filter((file) => /[.](html|css)$/.test(file)))
    copyFileSync(join(page, name), at('dist', 'sample-app', 'page', name));
};

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
