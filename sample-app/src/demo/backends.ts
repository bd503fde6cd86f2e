import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { UsageError } from './options.js';
import type { Parts } from './parts.js';

/** Server that the demo uses: its address, and its description. */
export interface Backend {
  readonly url: string;
  readonly description: string;
}

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/** Returns the path of a program; undefined when it is neither on the PATH nor in one of the folders. */
export const onPath = (program: string, ...folders: readonly string[]): string | undefined =>
  [...(process.env['PATH'] ?? '').split(delimiter), ...folders]
    .filter((directory) => directory !== '')
    .map((directory) => join(directory, program))
    .find(isExecutable);

/** Returns `host:port` of a URL that may contain a password; a connect string of ZooKeeper contains only this. */
const place = (url: string): string => {
  if (!url.includes('://')) return url;
  const { hostname, port } = new URL(url);
  return port ? `${hostname}:${port}` : hostname;
};

/** Returns the server that a variable names; undefined when it is not set. */
export const given = (
  variable: string,
  example: string,
  isAddress = (text: string): boolean => URL.canParse(text),
): Backend | undefined => {
  const url = process.env[variable];
  if (!url) return undefined;
  if (!isAddress(url)) throw new UsageError(`${variable} must be an address such as ${example}.`);
  return { url, description: `the one of ${variable} at ${place(url)}` };
};

const START_ATTEMPTS = 3;

/** Starts a server as a part: a program with arguments of the part, or a server that is embedded in the part. */
export const startServer = async (
  parts: Parts,
  name: string,
  module: string,
  ...[program, ...args]: readonly string[]
): Promise<Backend> => {
  for (let attempt = 1; ; attempt++) {
    try {
      const { url } = await parts.start(name, module, {}, program ? [program, ...args] : []);
      const what = program ? `${program}, started for this run,` : `the ${name}`;
      return { url, description: `${what} at ${place(url)}` };
    } catch (error) {
      // Another process may take its port before it listens; the next attempt uses another port.
      if (attempt === START_ATTEMPTS) throw error;
    }
  }
};

export const startDatabase = async (parts: Parts): Promise<Backend> =>
  given('DATABASE_URL', 'postgres://user:password@localhost:5432/database') ??
  startServer(parts, 'embedded PostgreSQL', './parts/embedded-postgres.part.js');
