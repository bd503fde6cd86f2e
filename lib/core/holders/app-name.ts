import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { objectIn, textIn } from './process-record.js';

/** Resolves with the name in the nearest package.json above the script; undefined if there is none. */
export const appNameOf = async (script = process.argv[1]): Promise<string | undefined> => {
  if (script === undefined) return undefined;
  let folder = dirname(script);
  for (;;) {
    const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => undefined);
    if (text !== undefined) return textIn(objectIn(text)['name']);
    const above = dirname(folder);
    if (above === folder) return undefined;
    folder = above;
  }
};
