import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import { invalidOption, reading } from '../../core/settings/option-checks.js';
import { faultOfPath } from './lock-path.js';
import type { ZkAuth } from './zk-session.js';

const DEFAULT_PORT = 2_181;
const MAX_PORT = 65_535;
const DEFAULT_BASE = '/locks';
/** A host name, an IPv4 address, or an IPv6 address in brackets; and a port. */
const SERVER = /^(\[[\da-f:.]+\]|[^\s:/,[\]@]+)(?::(\d{1,5}))?$/i;

/** One server of the ensemble. */
export interface ZkServer {
  readonly host: string;
  readonly port: number;
}

/** Servers of an ensemble, and the node under which all of its paths are; an empty text for the root. */
export interface Ensemble {
  readonly servers: readonly ZkServer[];
  readonly chroot: string;
}

/** @throws {LockConfigurationError} for a text that names no servers */
export const parseConnect = (connect: unknown): Ensemble => {
  const expected = 'servers such as "zk1:2181,zk2:2181,zk3:2181", or with a chroot "zk1:2181,zk2:2181/app"';
  if (typeof connect !== 'string') return invalidOption('connect', expected, connect);
  const slash = connect.indexOf('/');
  const refuse = (): never => {
    // What stands before the @ is most likely a password.
    if (!connect.includes('@')) return invalidOption('connect', expected, connect);
    throw new LockConfigurationError(
      `connect must be ${expected}. It has no place for a user and a password: pass them in auth.`,
    );
  };
  const [list, chroot] = slash < 0 ? [connect, ''] : [connect.slice(0, slash), connect.slice(slash)];
  const servers = list.split(',').map((server): ZkServer => {
    const [, host, port = DEFAULT_PORT] = SERVER.exec(server.trim()) ?? [];
    if (host === undefined || Number(port) < 1 || Number(port) > MAX_PORT) return refuse();
    return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
  });
  return { servers, chroot: chroot === '/' ? '' : checkPath('The chroot of connect', chroot) };
};

/** @throws {LockConfigurationError} for a text that is no path */
export const resolveBasePath = (basePath: unknown = DEFAULT_BASE): string => {
  if (typeof basePath !== 'string' || basePath === '')
    return invalidOption('basePath', 'a path such as "/locks"', basePath);
  return checkPath('basePath', basePath);
};

/** @throws {LockConfigurationError} for an identity that is no `user:password` */
export const resolveAuth = (auth: unknown): readonly ZkAuth[] => {
  if (auth === undefined) return [];
  const { digest } = reading('auth', () => ({ ...(auth as { digest?: unknown }) }));
  // The value is secret.
  if (typeof digest === 'string' && /^[^:]+:./s.test(digest))
    return [{ scheme: 'digest', credentials: digest }];
  throw new LockConfigurationError("auth must be { digest: 'user:password' }.");
};

/** @throws {LockConfigurationError} for anything but options of `tls.connect` */
export const resolveTls = (tls: unknown): ConnectionOptions | undefined => {
  if (tls === undefined || tls === false) return undefined;
  if (tls === true) return {};
  if (typeof tls !== 'object' || tls === null)
    return invalidOption('tls', 'true, or options of tls.connect such as { ca }', tls);
  return reading('tls', () => ({ ...tls }));
};

/** Returns a function that connects to a server. */
export const dialerOf =
  ({ host, port }: ZkServer, tls: ConnectionOptions | undefined) =>
  (): Socket =>
    tls ? connectTls({ ...tls, host, port }) : connectTcp({ host, port });

const checkPath = (option: string, path: string): string => {
  const fault = path === '' ? undefined : faultOfPath(path);
  if (fault === undefined) return path;
  throw new LockConfigurationError(`${option} must ${fault}, but is ${JSON.stringify(path)}.`);
};
