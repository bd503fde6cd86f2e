import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Certificate } from '../certificate.js';
import type { Compiles } from '../java/java-process.js';
import { LOOPBACK } from '../loopback.js';
import type { ServerOptions } from './server-process.js';

export interface ZooKeeperServerOptions extends ServerOptions {
  /** Length of a tick in ms. The server notices expired sessions once a tick. Default: 200. */
  readonly tickTimeMs?: number;
  /** Shortest session timeout that a client gets, in ms. Default: 200. */
  readonly minSessionTimeoutMs?: number;
  /** Longest session timeout that a client gets, in ms. Default: 10 minutes. */
  readonly maxSessionTimeoutMs?: number;
  /** Interval in ms at which the server removes empty containers. Default: a minute, as ZooKeeper has it. */
  readonly containerCheckMs?: number;
  /** Opens a second port for TLS, with this certificate, or with a new one. Default: false. */
  readonly tls?: boolean | Certificate;
  /** Further lines of zoo.cfg, which replace the ones of this class. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Further system properties, as `jute.maxbuffer`. */
  readonly properties?: Readonly<Record<string, string | number>>;
  /** How the JVM compiles: soon, which tests want, or well, with a heap for a load. Default: `soon`. */
  readonly compiles?: Compiles;
}

/** Ports of one member of an ensemble. */
export interface MemberPorts {
  readonly client: number;
  readonly quorum: number;
  readonly election: number;
}

/** Place of a server in an ensemble. */
export interface Membership {
  /** Number of the server, from 1. */
  readonly id: number;
  readonly members: readonly MemberPorts[];
}

export interface ServerPlace {
  readonly folder: string;
  readonly port: number;
  readonly tlsPort: number | undefined;
  readonly certificate: Certificate | undefined;
  readonly membership: Membership | undefined;
}

const JVM: Readonly<Record<Compiles, readonly string[]>> = {
  soon: ['-Xmx128m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'],
  well: ['-Xmx512m', '-XX:+UseSerialGC'],
};

const tlsLines = async ({ folder, tlsPort, certificate }: ServerPlace): Promise<Record<string, string>> => {
  if (!certificate) return {};
  const keyStore = join(folder, 'server.pem');
  await writeFile(keyStore, `${certificate.key}${certificate.cert}`, { mode: 0o600 });
  return {
    secureClientPort: String(tlsPort),
    secureClientPortAddress: LOOPBACK,
    serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
    'ssl.keyStore.location': keyStore,
    'ssl.keyStore.type': 'PEM',
    'ssl.clientAuth': 'none',
  };
};

const memberLines = async ({
  folder,
  port,
  membership,
}: ServerPlace): Promise<Record<string, string | number>> => {
  if (!membership) return { clientPort: port, clientPortAddress: LOOPBACK };
  await writeFile(join(folder, 'data', 'myid'), String(membership.id));
  const members = membership.members.map(({ client, quorum, election }, i) => [
    `server.${i + 1}`,
    `${LOOPBACK}:${quorum}:${election};${LOOPBACK}:${client}`,
  ]);
  // In ticks. Long enough for a busy machine: a member that is killed is noticed at once, by its connections.
  return { initLimit: 50, syncLimit: 10, ...Object.fromEntries(members) };
};

/** Writes the configuration of a server, whose folder has a folder `data`. Returns its path. */
export const writeZooKeeperConfiguration = async (
  place: ServerPlace,
  {
    tickTimeMs = 200,
    minSessionTimeoutMs = 200,
    maxSessionTimeoutMs = 600_000,
    settings,
  }: ZooKeeperServerOptions,
): Promise<string> => {
  const lines = {
    dataDir: join(place.folder, 'data'),
    tickTime: tickTimeMs,
    minSessionTimeout: minSessionTimeoutMs,
    maxSessionTimeout: maxSessionTimeoutMs,
    maxClientCnxns: 0,
    'admin.enableServer': false,
    '4lw.commands.whitelist': '*',
    // In KB. Each file of the log takes its whole size at once.
    preAllocSize: 1024,
    ...(await memberLines(place)),
    ...(await tlsLines(place)),
    ...settings,
  };
  const file = join(place.folder, 'zoo.cfg');
  const text = Object.entries(lines).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(file, text.join(''));
  return file;
};

/** Returns the arguments of `java` for a server. */
export const javaArguments = (
  classPath: string,
  { folder }: ServerPlace,
  { containerCheckMs, compiles = 'soon', properties }: ZooKeeperServerOptions,
  configuration: string,
): readonly string[] => {
  const all = {
    // Native code of the jars goes where it is removed with the server.
    'java.io.tmpdir': folder,
    'org.slf4j.simpleLogger.defaultLogLevel': 'warn',
    'org.slf4j.simpleLogger.showDateTime': true,
    'org.slf4j.simpleLogger.dateTimeFormat': 'HH:mm:ss.SSS',
    ...(containerCheckMs !== undefined && { 'znode.container.checkIntervalMs': containerCheckMs }),
    ...properties,
  };
  return [
    ...JVM[compiles],
    // Otherwise a server that is killed leaves a file in /tmp.
    '-XX:-UsePerfData',
    ...Object.entries(all).map(([name, value]) => `-D${name}=${value}`),
    ...['-cp', classPath, 'org.apache.zookeeper.server.quorum.QuorumPeerMain', configuration],
  ];
};
