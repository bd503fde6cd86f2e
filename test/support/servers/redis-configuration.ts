import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Certificate } from '../certificate.js';
import type { ServerOptions } from './server-process.js';

export interface RedisServerOptions extends ServerOptions {
  /** Lines of redis.conf, as they would stand there: `'maxmemory 2mb'`, `'maxmemory-policy noeviction'`. */
  readonly config?: readonly string[];
  /** Keeps data in an append-only file, so that it survives `kill('SIGKILL')`. Default: nothing is written. */
  readonly appendFsync?: 'always' | 'everysec';
  /** Password of the default user. */
  readonly password?: string;
  /** ACL rules, each `'<name> <rules>'`: `'app on >secret ~lock:* &* +@all'`. */
  readonly users?: readonly string[];
  /**
   * Listens with TLS only, with this certificate or with a self-signed one: `server.certificate.cert` is the `ca` to
   * trust. The servers of a cluster need a common one.
   */
  readonly tls?: boolean | Certificate;
  /** A server of a Redis Cluster: it has a second port, on which it talks to the others. */
  readonly cluster?: boolean;
  /** A sentinel instead of a server: it keeps no data. */
  readonly sentinel?: boolean;
}

/** A user of every test server, who may do everything whatever users and passwords are under test. */
export const ADMIN = { username: 'test-admin', password: 'test-admin' } as const;

const transport = async (
  folder: string,
  port: number,
  certificate: Certificate | undefined,
): Promise<string[]> => {
  if (!certificate) return [`port ${port}`];
  const certFile = join(folder, 'server.crt');
  const keyFile = join(folder, 'server.key');
  await writeFile(certFile, certificate.cert);
  await writeFile(keyFile, certificate.key, { mode: 0o600 });
  return [
    'port 0',
    `tls-port ${port}`,
    `tls-cert-file ${certFile}`,
    `tls-key-file ${keyFile}`,
    `tls-ca-cert-file ${certFile}`,
    'tls-auth-clients no',
  ];
};

/** Writes redis.conf, with everything it refers to, into the server's folder, and returns its path. */
export async function writeRedisConfiguration(
  folder: string,
  server: { readonly host: string; readonly port: number; readonly certificate: Certificate | undefined },
  { appendFsync, config = [], password, users = [], sentinel = false, cluster = false }: RedisServerOptions,
): Promise<string> {
  const lines = [
    `bind ${server.host}`,
    `dir ${folder}`,
    'daemonize no',
    ...(sentinel ? [] : ['save ""']),
    ...(cluster ? ['cluster-enabled yes'] : []),
    ...(appendFsync ? ['appendonly yes', `appendfsync ${appendFsync}`] : []),
    ...(await transport(folder, server.port, server.certificate)),
    ...(password === undefined ? [] : [`requirepass ${JSON.stringify(password)}`]),
    `user ${ADMIN.username} on >${ADMIN.password} ~* &* +@all`,
    ...users.map((user) => `user ${user}`),
    ...config,
  ];
  const file = join(folder, 'redis.conf');
  await writeFile(file, `${lines.join('\n')}\n`, { mode: 0o600 });
  return file;
}
