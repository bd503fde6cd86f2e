import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
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
  readonly version: string;
  readonly scripts: Readonly<Record<string, string>>;
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

const pack = async (...args: readonly string[]): Promise<PackReport> => {
  const options = { cwd: repository, timeoutMs: PACK_TIMEOUT_MS };
  const { stdout } = await npm(['pack', '--json', '--ignore-scripts', ...args], options);
  const [report] = JSON.parse(stdout) as [PackReport];
  return report;
};

const described = (file: string, { size, unpackedSize, files }: PackReport): Tarball => ({
  file,
  size,
  unpackedSize,
  paths: files.map(({ path }) => path).sort(),
});

/**
 * Packs the library into a folder, built anew if a source has changed since the last build. With `PACKED_TARBALL` it is
 * the file of that name instead, as it is: a release tests the very file that it publishes.
 */
export const packLibrary = async (folder: string): Promise<Tarball> => {
  const packed = process.env['PACKED_TARBALL'];
  if (packed) {
    const file = resolve(repository, packed);
    return described(file, await pack('--dry-run', file));
  }
  await node(['.ci/setup.mjs', '--build'], { cwd: repository, timeoutMs: BUILD_TIMEOUT_MS });
  const report = await pack('--pack-destination', folder);
  return described(join(folder, report.filename), report);
};
