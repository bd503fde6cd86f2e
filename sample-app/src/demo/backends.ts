import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { Client } from 'pg';
import type { Backend } from './backend.js';
import { given, place, type GivenServer } from './given.js';
import type { Parts } from './parts.js';

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

/** How long a server may take to reply to its probe, in ms. */
export const PROBE_TIMEOUT_MS = 5_000;

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

/** PostgreSQL of `DATABASE_URL`. */
export const GIVEN_DATABASE: GivenServer = {
  title: 'PostgreSQL',
  variable: 'DATABASE_URL',
  example: 'postgres://user:password@localhost:5432/database',
  async probe(url) {
    const client = new Client({ connectionString: url, connectionTimeoutMillis: PROBE_TIMEOUT_MS });
    await client.connect();
    await client.end();
  },
};

export const startDatabase = async (parts: Parts): Promise<Backend> =>
  (await given(GIVEN_DATABASE)) ??
  startServer(parts, 'embedded PostgreSQL', './parts/embedded-postgres.part.js');
