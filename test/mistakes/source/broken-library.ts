import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';
import { guardFolder } from '../../support/process-guard.js';
import type { Edit } from './edit.js';
import { declarationOf, place } from './place.js';
import { readSources } from './sources.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

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

/** A copy of lib/ with a mistake in it. It goes with this process, at the latest. */
export interface BrokenLibrary extends Disposable {
  /** The URL to load it from as a user does. */
  readonly url: string;
  /** Loads what is declared by these names in its core or its stores. */
  load<T extends object>(...names: (keyof T & string)[]): Promise<T>;
}

/** Makes a copy of lib/, folder by folder, with a mistake in it. */
export const breakLibrary = (mistake: string, edits: readonly Edit[]): BrokenLibrary => {
  const sources = readSources();
  const edited = place(mistake, edits, sources);
  const folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-broken-'));
  guardFolder(folder);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const compiledTo = (file: string): string => join(folder, 'lib', file.replace(/\.ts$/, '.js'));
  for (const [file, source] of sources) {
    mkdirSync(dirname(compiledTo(file)), { recursive: true });
    writeFileSync(compiledTo(file), compile(edited.get(file) ?? source));
  }
  const urlOf = (file: string): string => pathToFileURL(compiledTo(file)).href;
  return {
    url: urlOf('index.ts'),
    async load<T extends object>(...names: (keyof T & string)[]): Promise<T> {
      const parts = names.map(async (name) => {
        const { file } = declarationOf(name, sources);
        const module = (await import(/* @vite-ignore */ urlOf(file))) as T;
        return [name, module[name]] as const;
      });
      return Object.fromEntries(await Promise.all(parts)) as T;
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
};
