// Gets a database server from another release of Debian, and the libraries that it needs. They are only unpacked, and run
// with the loader of that release: nothing is installed. The address is the one from which this machine installs.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { capture, onPath } from '../process.mjs';
import { kept, limits } from './provide.mjs';

const SOURCES = '/etc/apt';

/** Returns the address of a Debian archive in the settings of apt. */
const archiveOf = () => {
  const folder = join(SOURCES, 'sources.list.d');
  const files = [join(SOURCES, 'sources.list'), ...readdirSync(folder).map((name) => join(folder, name))];
  for (const file of files) {
    let text = '';
    try {
      text = readFileSync(file, 'utf8');
    } catch {
      // It need not be there.
    }
    const [, address] = /^(?:deb|URIs:)\s+(?:\[.*?\]\s+)?(\S+\/debian\/?)(?:\s|$)/m.exec(text) ?? [];
    if (address) return address;
  }
  throw new Error('apt knows no archive of Debian');
};

const download = (folder, { suite, program }) => {
  const [state, root] = [join(folder, 'apt'), join(folder, 'root')];
  for (const name of ['lists/partial', 'cache/archives/partial'])
    mkdirSync(join(state, name), { recursive: true });
  mkdirSync(root);
  // An empty status: what is installed here is of another release.
  writeFileSync(join(state, 'status'), '');
  writeFileSync(join(state, 'sources.list'), `deb ${archiveOf()} ${suite} main\n`);
  const settings = {
    'Dir::State::lists': join(state, 'lists'),
    'Dir::State::status': join(state, 'status'),
    'Dir::Etc::sourcelist': join(state, 'sources.list'),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::Cache': join(state, 'cache'),
    'Debug::NoLocking': '1',
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  capture('apt-get', [...options, '-qq', 'update'], limits);
  const quiet = ['-qq', '-y', '--download-only', '--no-install-recommends'];
  capture('apt-get', [...options, ...quiet, 'install', program], limits);
  const archives = join(state, 'cache', 'archives');
  for (const name of readdirSync(archives).filter((file) => file.endsWith('.deb')))
    capture('dpkg-deb', ['--extract', join(archives, name), root], limits);
};

/** Provides a server of MySQL or MariaDB whose version begins with `version`. */
export const databaseServer = (name, { version, file, ...source }) => {
  if (process.platform !== 'linux' || process.arch !== 'x64' || !onPath('apt-get'))
    throw new Error('it is a package of Debian for Linux on x64, and takes apt-get');
  const root = join(
    kept(name, source, (folder) => download(folder, source)),
    'root',
  );
  const [loader, libraries, server] = [
    'usr/lib64/ld-linux-x86-64.so.2',
    'usr/lib/x86_64-linux-gnu',
    `usr/sbin/${file}`,
  ].map((path) => join(root, path));
  const said = capture(loader, ['--library-path', libraries, server, '--no-defaults', '--version'], limits);
  const [, found] = /Ver (\d+\.\d+\.\d+)/.exec(said) ?? [];
  if (!found?.startsWith(version)) throw new Error(`the package has version ${found}, not ${version}`);
  return { versions: { database: found }, env: { TEST_MYSQL_ROOT: root } };
};
