import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';
import { guardFolder } from '../../support/process-guard.js';
import type { Core } from '../core-api.js';

/** Some text in a file of lib/core, and what stands there in the copy instead. */
export interface Patch {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

const SOURCE = fileURLToPath(new URL('../../../lib/core/', import.meta.url));

const compiled = new Map<string, string>();

const compile = (source: string): string => {
  let output = compiled.get(source);
  if (output === undefined) {
    const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
    output = ts.transpileModule(source, { compilerOptions }).outputText;
    compiled.set(source, output);
  }
  return output;
};

/** Applies a patch. A text that is not there exactly once is an error: the core has changed, and the patch has to. */
const patched = (source: string, { file, find, replace }: Patch): string => {
  const parts = source.split(find);
  if (parts.length === 2) return parts.join(replace);
  throw new Error(
    `lib/core/${file} has this text ${parts.length - 1} times, so it cannot be broken there: ${find}`,
  );
};

/** A copy of lib/core with mistakes in it, loaded from a folder of its own. `dispose` removes the folder. */
export const loadPatchedCore = async (
  patches: readonly Patch[],
): Promise<{ readonly core: Core; dispose(): void }> => {
  const folder = mkdtempSync(join(tmpdir(), 'core-with-a-mistake-'));
  guardFolder(folder);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  for (const file of readdirSync(SOURCE)) {
    const original = readFileSync(join(SOURCE, file), 'utf8');
    const source = patches.filter((patch) => patch.file === file).reduce(patched, original);
    writeFileSync(join(folder, file.replace(/\.ts$/, '.js')), compile(source));
  }
  const load = async <T>(name: string): Promise<T> =>
    (await import(/* @vite-ignore */ pathToFileURL(join(folder, `${name}.js`)).href)) as T;
  const { LockManager } = await load<Pick<Core, 'LockManager'>>('lock-manager');
  const { detached } = await load<Pick<Core, 'detached'>>('frames');
  const { defaultCall, DEFAULT_SETTINGS } =
    await load<Pick<Core, 'defaultCall' | 'DEFAULT_SETTINGS'>>('lock-settings');
  return {
    core: { LockManager, detached, defaultCall, DEFAULT_SETTINGS },
    dispose: () => rmSync(folder, { recursive: true, force: true }),
  };
};
