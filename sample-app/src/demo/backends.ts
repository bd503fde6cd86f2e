import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Part, Parts } from './parts.js';

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

const onPath = (program: string): string | undefined =>
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((directory) => directory !== '')
    .map((directory) => join(directory, program))
    .find(isExecutable);

/** Returns `host:port` of a URL that may contain a password. */
const place = (url: string): string => {
  const { hostname, port } = new URL(url);
  return port ? `${hostname}:${port}` : hostname;
};

const START_ATTEMPTS = 3;

/** Starts a server. Another process may take its port before it listens; the next attempt uses another port. */
const startRedisPart = async (
  parts: Parts,
  name: string,
  module: string,
  args: string[] = [],
): Promise<Part> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await parts.start(name, module, {}, args);
    } catch (error) {
      if (attempt === START_ATTEMPTS) throw error;
    }
  }
};

const backend = ({ url }: Part, what: string): Backend => ({ url, description: `${what} at ${place(url)}` });

export const startRedis = async (parts: Parts): Promise<Backend> => {
  const given = process.env['REDIS_URL'];
  if (given) return { url: given, description: `the one of REDIS_URL at ${place(given)}` };
  const program = onPath('redis-server') ?? onPath('valkey-server');
  if (program) {
    const part = await startRedisPart(parts, 'Redis server', './parts/redis-server.part.js', [program]);
    return backend(part, `${program}, started for this run,`);
  }
  const part = await startRedisPart(parts, 'embedded Valkey', './parts/embedded-valkey.part.js');
  return backend(part, 'the embedded Valkey (no redis-server on the PATH)');
};

export const startDatabase = async (parts: Parts): Promise<Backend> => {
  const given = process.env['DATABASE_URL'];
  if (given) return { url: given, description: `the one of DATABASE_URL at ${place(given)}` };
  const part = await parts.start('embedded PostgreSQL', './parts/embedded-postgres.part.js');
  return backend(part, 'the embedded one');
};
