import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Part, Parts } from './parts.js';

/** A server that the demo uses: where it is, and in words which one it is. */
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

/** `host:port` of a URL that may hold a password. */
const place = (url: string): string => {
  const { hostname, port } = new URL(url);
  return port ? `${hostname}:${port}` : hostname;
};

const backend = ({ url }: Part, what: string): Backend => ({ url, description: `${what} at ${place(url)}` });

export const startRedis = async (parts: Parts): Promise<Backend> => {
  const given = process.env['REDIS_URL'];
  if (given) return { url: given, description: `the one of REDIS_URL at ${place(given)}` };
  const program = onPath('redis-server') ?? onPath('valkey-server');
  if (program) {
    const part = await parts.start('Redis server', './parts/redis-server.part.js', {}, [program]);
    return backend(part, `${program}, started for this run,`);
  }
  const part = await parts.start('embedded Valkey', './parts/embedded-valkey.part.js');
  return backend(part, 'the embedded Valkey (no redis-server on the PATH)');
};

export const startDatabase = async (parts: Parts): Promise<Backend> => {
  const given = process.env['DATABASE_URL'];
  if (given) return { url: given, description: `the one of DATABASE_URL at ${place(given)}` };
  const part = await parts.start('embedded PostgreSQL', './parts/embedded-postgres.part.js');
  return backend(part, 'the embedded one');
};
