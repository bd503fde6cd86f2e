import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { node, npm } from './command.js';

export const repository = fileURLToPath(new URL('../../..', import.meta.url));

const BUILD_TIMEOUT_MS = 300_000;
const PACK_TIMEOUT_MS = 60_000;

/** The package as it is published. */
export interface Tarball {
  readonly file: string;
  /** Bytes to download. */
  readonly size: number;
  /** Bytes on a user's disk. */
  readonly unpackedSize: number;
  /** Paths inside the package, sorted. */
  readonly paths: readonly string[];
}

interface PackReport {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

/** The part of package.json that the tests compare with. */
export interface Manifest {
  readonly dependencies: Record<string, string>;
  readonly peerDependencies: Record<string, string>;
  readonly peerDependenciesMeta: Record<string, { readonly optional?: boolean }>;
}

export const readManifest = async (): Promise<Manifest> =>
  JSON.parse(await readFile(join(repository, 'package.json'), 'utf8')) as Manifest;

/** The packages that an app need not have. */
export const optionalPeers = async (): Promise<readonly string[]> => {
  const { peerDependenciesMeta } = await readManifest();
  return Object.keys(peerDependenciesMeta).filter((name) => peerDependenciesMeta[name]?.optional);
};

/** Packs the library into a folder, built anew if a source has changed since the last build. */
export const packLibrary = async (folder: string): Promise<Tarball> => {
  await node(['.ci/setup.mjs', '--build'], { cwd: repository, timeoutMs: BUILD_TIMEOUT_MS });
  const { stdout } = await npm(['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
    cwd: repository,
    timeoutMs: PACK_TIMEOUT_MS,
  });
  const [report] = JSON.parse(stdout) as [PackReport];
  const { filename, size, unpackedSize, files } = report;
  const paths = files.map(({ path }) => path).sort();
  return { file: join(folder, filename), size, unpackedSize, paths };
};
