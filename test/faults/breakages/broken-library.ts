import { mkdtempSync, readdirSync, readFileSync, symlinkSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';
import { guardFolder } from '../../support/process-guard.js';

/** Some text in a file of lib/, and what stands there in the copy instead. */
export interface Patch {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const LIBRARY = join(ROOT, 'lib');

const options: ts.CompilerOptions = {
  module: ts.ModuleKind.ESNext,
  target: ts.ScriptTarget.ES2022,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  useDefineForClassFields: false,
};

const compiled = new Map<string, string>();

const compile = (source: string): string => {
  const before = compiled.get(source);
  if (before !== undefined) return before;
  const { outputText } = ts.transpileModule(source, { compilerOptions: options });
  compiled.set(source, outputText);
  return outputText;
};

/** A text that is not there exactly once is an error: the library has changed, and the breakage has to follow. */
const patched = (source: string, { file, find, replace }: Patch): string => {
  const parts = source.split(find);
  if (parts.length === 2) return parts.join(replace);
  throw new Error(`lib/${file} has this ${parts.length - 1} times, so it cannot be broken there: ${find}`);
};

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesIn(path);
    return entry.name.endsWith('.ts') ? [path] : [];
  });

/** Makes a copy of lib/ with mistakes in it, and returns the URL to load it from. It goes with this process. */
export const breakLibrary = (patches: readonly Patch[]): string => {
  const folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-broken-'));
  guardFolder(folder);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const path of filesIn(LIBRARY)) {
    const file = relative(LIBRARY, path);
    const source = patches.filter((patch) => patch.file === file).reduce(patched, readFileSync(path, 'utf8'));
    const target = join(folder, 'lib', file.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, compile(source));
  }
  return pathToFileURL(join(folder, 'lib', 'index.js')).href;
};
