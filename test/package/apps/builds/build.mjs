// Builds src/main.ts with one of these builds, into dist/<build>/main.js:
//
//   node build.mjs <build>
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';

const SOURCE = 'src/main.ts';
const build = process.argv[2];
const folder = `dist/${build}`;
const file = `${folder}/main.js`;

const node = (script, ...args) =>
  execFileSync(process.execPath, [`node_modules/${script}`, ...args], { stdio: 'inherit' });
const source = () => readFileSync(SOURCE, 'utf8');

const tsc = (target, outDir = folder) => node('typescript/bin/tsc', '--target', target, '--outDir', outDir);

const swc = async (target, minify = false) => {
  const { transformSync } = await import('@swc/core');
  const { code } = transformSync(source(), {
    swcrc: false,
    minify,
    module: { type: 'es6' },
    jsc: {
      target,
      externalHelpers: true,
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
      ...(minify && { minify: { mangle: true, compress: true } }),
    },
  });
  writeFileSync(file, code);
};

const babel = async (targets) => {
  const { transformSync } = await import('@babel/core');
  const { code } = transformSync(source(), {
    filename: SOURCE,
    babelrc: false,
    configFile: false,
    presets: [['@babel/preset-env', { targets, modules: false }], '@babel/preset-typescript'],
    plugins: [['@babel/plugin-proposal-decorators', { version: 'legacy' }]],
  });
  writeFileSync(file, code);
};

const esbuild = async (options) => {
  const { buildSync } = await import('esbuild');
  buildSync({
    entryPoints: [SOURCE],
    outfile: file,
    bundle: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    ...options,
  });
};

// Takes in rxjs, whose classes a minified bundle renames.
const webpack = async (mode) => {
  const { default: pack } = await import('webpack');
  const isExternal = (request) => !/^(?:[./]|rxjs)/.test(request);
  const options = {
    mode,
    target: 'node20',
    entry: resolve(SOURCE),
    devtool: false,
    experiments: { outputModule: true },
    externalsType: 'module',
    externals: [({ request }, done) => (isExternal(request) ? done(null, request) : done())],
    output: { path: resolve(folder), filename: 'main.js', module: true },
    module: { rules: [{ test: /\.ts$/, loader: 'ts-loader', options: { transpileOnly: true } }] },
    resolve: { extensions: ['.ts', '.js'] },
  };
  await new Promise((done, fail) =>
    pack(options, (error, stats) =>
      error || stats.hasErrors() ? fail(error ?? new Error(stats.toString())) : done(),
    ),
  );
};

const ncc = (...flags) => {
  tsc('ES2023', `${folder}/tsc`);
  node('@vercel/ncc/dist/ncc/cli.js', 'build', `${folder}/tsc/main.js`, '--out', folder, '--quiet', ...flags);
  writeFileSync(file, `import './index.js';\n`);
};

const bun = (...flags) =>
  execFileSync(
    `node_modules/@oven/bun-${process.platform}-${process.arch}/bin/bun`,
    ['build', SOURCE, '--target', 'node', '--packages', 'external', '--outfile', file, ...flags],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );

const BUILDS = {
  'tsc ES2023': () => tsc('ES2023'),
  'tsc ES2017': () => tsc('ES2017'),
  'tsc ES2015': () => tsc('ES2015'),
  'swc es2022': () => swc('es2022'),
  'swc es2017': () => swc('es2017'),
  'swc es2015': () => swc('es2015'),
  'swc es5': () => swc('es5'),
  'swc minified': () => swc('es2022', true),
  'babel node 20': () => babel({ node: '20' }),
  'babel chrome 50': () => babel({ chrome: '50' }),
  'babel es5': () => babel({ ie: '11' }),
  'esbuild node20': () => esbuild({ target: 'node20' }),
  'esbuild es2016': () => esbuild({ target: 'es2016' }),
  'esbuild minified': () => esbuild({ minify: true }),
  'webpack development': () => webpack('development'),
  'webpack production': () => webpack('production'),
  ncc: () => ncc(),
  'ncc minified': () => ncc('--minify'),
  'bun build': () => bun(),
  'bun minified': () => bun('--minify'),
};

mkdirSync(folder, { recursive: true });
await BUILDS[build]();
