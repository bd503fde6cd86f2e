#!/usr/bin/env node
// Installs what the tests need and npm does not install. It prints what is there, what it installs, and what you have
// to do by hand. `npm run setup` runs it, and so does `npm test` before it begins. Plain Node: it runs before anything
// is installed.
//
//   node .ci/machine.mjs               installs what is missing, with apt-get and as root, or fetches it with Maven;
//                                      elsewhere prints what to do
//   node .ci/machine.mjs --dry-run     only prints it
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { APT_DOES, installWithApt, mayInstall } from './apt.mjs';
import { exclusively } from './exclusive.mjs';
import { CHROMIUM, onPath, postgresProgram } from './process.mjs';
import {
  canFetchZooKeeper,
  fetchZooKeeper,
  ZOOKEEPER_FETCH,
  ZOOKEEPER_PACKAGES,
  zookeeperClassPath,
} from './zookeeper.mjs';

const findLibrary = (...path) =>
  ['/usr/lib', '/usr/lib64', '/usr/local/lib']
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => [folder, ...readdirSync(folder).map((name) => join(folder, name))])
    .map((folder) => join(folder, ...path))
    .find((file) => existsSync(file));

/** A way to provide what is missing: whether it is possible here, what that takes, and what it does. */
const withApt = (...names) => ({
  isPossible: mayInstall,
  takes: 'Linux, apt-get and root',
  does: APT_DOES(...names),
  provide: () => installWithApt(...names),
});

const withMaven = {
  isPossible: canFetchZooKeeper,
  takes: 'Java and Maven',
  does: ZOOKEEPER_FETCH,
  provide: fetchZooKeeper,
};

const NEEDS = [
  {
    name: 'a Redis server',
    why: 'most tests run against a real one',
    find: () => onPath('redis-server', 'valkey-server'),
    ways: [withApt('redis-server')],
    byHand:
      'install redis-server (Debian and Ubuntu: apt-get install redis-server; macOS: brew install redis) or valkey-server, so that it is on the PATH',
    required: true,
    without: 'only the tests that need no server ran',
  },
  {
    name: 'MariaDB',
    why: 'the store on MySQL and fenceTransaction are tested on a real one',
    find: () => onPath('mariadbd') ?? ['/usr/sbin/mariadbd'].find((file) => existsSync(file)),
    ways: [withApt('mariadb-server-core')],
    byHand:
      'install mariadbd, so that it is on the PATH (Debian and Ubuntu: apt-get install mariadb-server-core)',
    required: false,
    without: 'the tests on MySQL failed',
  },
  {
    name: 'libfaketime',
    why: 'test/faults sets the clock of its Redis servers with it',
    find: () => findLibrary('faketime', 'libfaketime.so.1'),
    ways: [withApt('libfaketime')],
    byHand: 'Debian and Ubuntu: apt-get install libfaketime',
    required: false,
    without: 'the tests that set the clock of a server failed',
  },
  {
    name: 'PostgreSQL',
    why: 'the store on PostgreSQL and fenceTransaction are tested on a real one',
    find: () => postgresProgram('postgres'),
    ways: [withApt('postgresql')],
    byHand: 'Debian and Ubuntu: apt-get install postgresql; macOS: brew install postgresql',
    required: false,
    without: 'the tests on PostgreSQL failed',
  },
  {
    name: 'PgBouncer',
    why: 'the store on PostgreSQL is tested behind a real one',
    find: () => onPath('pgbouncer') ?? ['/usr/sbin/pgbouncer'].find((file) => existsSync(file)),
    ways: [withApt('pgbouncer')],
    byHand: 'Debian and Ubuntu: apt-get install pgbouncer; macOS: brew install pgbouncer',
    required: false,
    without: 'the tests behind PgBouncer failed',
  },
  {
    name: 'Chromium',
    why: 'the page of the sample app and the site of docs/ are tested in a real browser',
    find: () => onPath(...CHROMIUM),
    ways: [withApt('chromium')],
    byHand:
      'Debian: apt-get install chromium; elsewhere install Chromium or Chrome, so that it is on the PATH',
    required: false,
    without: 'the tests of these pages failed',
  },
  {
    name: 'ZooKeeper',
    why: 'the store on ZooKeeper is tested on a real one',
    find: () => (onPath('java') ? zookeeperClassPath() : undefined),
    ways: [withMaven, withApt(...ZOOKEEPER_PACKAGES)],
    byHand: `install Java and Maven and run npm run setup again (Debian and Ubuntu, without Maven: apt-get install ${ZOOKEEPER_PACKAGES.join(' ')})`,
    required: false,
    without: 'the tests on ZooKeeper failed',
  },
];

const say = (line) => console.log(`machine: ${line}`);

/** Tries the ways in their order. Throws what went wrong with each, when none of them provides the need. */
const install = (need, ways) => {
  const failures = [];
  for (const way of ways) {
    // Another command may have installed it while this one waited.
    if (need.find()) return;
    try {
      way.provide();
      if (need.find()) return;
      failures.push(`after ${way.does}, ${need.name} is not where it should be`);
    } catch (error) {
      failures.push(`${error.message}\n${error.output ?? ''}`.trimEnd());
    }
  }
  throw new Error(failures.join('\n'));
};

/** Prints in one line how a need is met. Resolves with whether it is met in the end. */
const provide = async (need, { dryRun }) => {
  const there = need.find();
  if (there) {
    say(`${need.name}: ${there}`);
    return true;
  }
  const missing = `${need.name}: missing; ${need.why}`;
  const ways = need.ways.filter(({ isPossible }) => isPossible());
  const does = ways.map((way) => way.does).join('; if that fails, ');
  if (ways.length === 0) {
    const takes = need.ways.map((way) => way.takes).join('; or ');
    say(`${missing}; not installed (that takes ${takes}); ${need.byHand}`);
    return false;
  }
  if (dryRun) {
    say(`${missing}; would be installed: ${does}`);
    return true;
  }
  say(`${missing}; installing it: ${does}`);
  try {
    await exclusively(() => install(need, ways));
    return true;
  } catch (error) {
    say(`${need.name}: ${error.message}; ${need.byHand}`);
    return false;
  }
};

/** Installs what is missing, if allowed. Resolves with what is missing afterwards. */
export const setUpMachine = async ({ dryRun = false } = {}) => {
  const missing = [];
  for (const need of NEEDS) if (!(await provide(need, { dryRun }))) missing.push(need);
  return missing;
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const flags = process.argv.slice(2);
  const unknown = flags.filter((flag) => flag !== '--dry-run');
  if (unknown.length > 0) {
    console.error(`machine: unknown option ${unknown.join(', ')}; there is --dry-run`);
    process.exitCode = 1;
  } else {
    const missing = await setUpMachine({ dryRun: flags.length > 0 });
    if (missing.some(({ required }) => required)) process.exitCode = 1;
  }
}
