// Lets plain Node run the TypeScript of this repository: in worker processes of tests, and in benchmarks.
// TypeScript's own transpiler is used, so decorators and their metadata come out as in a build. What it made is
// kept by content under node_modules/.cache: a process with nothing new to transpile does not even load it.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isElsewhere, otherPackages } from '../other-packages/index.mjs';

const require = createRequire(import.meta.url);
const root = fileURLToPath(new URL('../../..', import.meta.url));
const rootUrl = new URL('../../..', import.meta.url).href;
const configFile = join(root, 'tsconfig.json');
const cache = join(root, 'node_modules', '.cache', 'nest-redis-lock');

const settings = createHash('sha256')
  .update(readFileSync(configFile))
  .update(readFileSync(fileURLToPath(import.meta.url)))
  .update(require('typescript/package.json').version)
  .digest();

const isOurs = (url) => url?.startsWith(rootUrl) && !url.includes('/node_modules/');
const isTypeScript = (url) => isOurs(url) && url.endsWith('.ts');

const transpile = (file, source) => {
  const ts = require('typescript');
  const { config } = ts.readConfigFile(configFile, ts.sys.readFile);
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root);
  const { outputText } = ts.transpileModule(source, {
    fileName: file,
    compilerOptions: {
      ...options,
      // Whether a file is a module would be looked up in package.json, which the transpiler cannot do.
      module: ts.ModuleKind.ESNext,
      moduleResolution: ts.ModuleResolutionKind.Bundler,
      noEmit: false,
      declaration: false,
      sourceMap: false,
      inlineSourceMap: true,
      inlineSources: true,
    },
  });
  return outputText;
};

const compiled = (file) => {
  const source = readFileSync(file, 'utf8');
  const key = createHash('sha256').update(settings).update(file).update('\0').update(source).digest('hex');
  const kept = join(cache, `${key}.js`);
  if (existsSync(kept)) return readFileSync(kept, 'utf8');
  const output = transpile(file, source);
  mkdirSync(cache, { recursive: true });
  // Renamed into place: several processes may write the same file at the same moment.
  const partial = join(cache, `${key}.${process.pid}.partial`);
  writeFileSync(partial, output);
  renameSync(partial, kept);
  return output;
};

let aliases = {};

/** `aliases`: package specifiers and the files (as URLs) that stand in for them. */
export const initialize = (data) => {
  aliases = data?.aliases ?? {};
};

export const resolve = (specifier, context, nextResolve) => {
  if (Object.hasOwn(aliases, specifier) && isOurs(context.parentURL)) {
    return { url: aliases[specifier], format: 'module', shortCircuit: true };
  }
  if (/^\.\.?\/.*\.js$/.test(specifier) && isTypeScript(context.parentURL)) {
    const url = new URL(specifier, context.parentURL).href.replace(/\.js$/, '.ts');
    if (existsSync(fileURLToPath(url))) return { url, format: 'module', shortCircuit: true };
  }
  if (otherPackages && isElsewhere(specifier) && isOurs(context.parentURL)) {
    return nextResolve(specifier, { ...context, parentURL: pathToFileURL(otherPackages).href });
  }
  return nextResolve(specifier, context);
};

export const load = (url, context, nextLoad) => {
  if (!isTypeScript(url)) return nextLoad(url, context);
  return { format: 'module', source: compiled(fileURLToPath(url)), shortCircuit: true };
};
