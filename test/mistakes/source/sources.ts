import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Sources } from './place.js';

const LIBRARY = fileURLToPath(new URL('../../../lib', import.meta.url));

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesIn(path);
    return entry.name.endsWith('.ts') ? [path] : [];
  });

/** Reads lib/ with all its folders. */
export const readSources = (): Sources =>
  new Map(
    filesIn(LIBRARY).map((path) => [
      relative(LIBRARY, path).split(sep).join('/'),
      readFileSync(path, 'utf8'),
    ]),
  );
