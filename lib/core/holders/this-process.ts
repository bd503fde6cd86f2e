// `node:fs/promises` would be loaded with the library; Node loads `promises` at its first use.
import { promises } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { objectIn, textIn, type ProcessRecord } from '../seam/process-record.js';

/** Returns the record of this process. */
export const ownRecord = (appName: string | undefined): ProcessRecord => ({
  host: hostname(),
  pid: process.pid,
  ...(appName !== undefined && { appName }),
});

/** Resolves with the name in the nearest package.json above the script that has one; undefined if there is none. */
export const appNameOf = async (script = process.argv[1]): Promise<string | undefined> => {
  if (script === undefined) return undefined;
  let folder = dirname(script);
  for (;;) {
    const text = await promises.readFile(join(folder, 'package.json'), 'utf8').catch(() => undefined);
    // Builds often have a package.json that says only how modules are loaded.
    const name = text === undefined ? undefined : textIn(objectIn(text)['name']);
    if (name !== undefined) return name;
    const above = dirname(folder);
    if (above === folder) return undefined;
    folder = above;
  }
};
