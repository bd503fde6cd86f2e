#!/usr/bin/env node
// Installs what the tests need and npm does not install. It prints what is there, what it installs, and what you have
// to do by hand. `npm run setup` runs it, and so does `npm test` before it begins. Plain Node: it runs before anything
// is installed.
//
//   node .ci/machine.mjs               installs what is missing, with apt-get and as root; elsewhere prints what to do
//   node .ci/machine.mjs --dry-run     only prints it
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { APT_DOES, installWithApt, mayInstall } from './apt.mjs';
import { exclusively } from './exclusive.mjs';
import { onPath, postgresProgram } from './process.mjs';

const findLibrary = (...path) =>
  ['/usr/lib', '/usr/lib64', '/usr/local/lib']
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => [folder, ...readdirSync(folder).map((name) => join(folder, name))])
    .map((folder) => join(folder, ...path))
    .find((file) => existsSync(file));

const NEEDS = [
  {
    name: 'a Redis server',
    why: 'most tests run against a real one',
    find: () => onPath('redis-server', 'valkey-server'),
    package: 'redis-server',
    byHand:
      'install redis-server (Debian and Ubuntu: apt-get install redis-server; macOS: brew install redis) or valkey-server, so that it is on the PATH',
    required: true,
    without: 'only the tests that need no server ran',
  },
  {
    name: 'MariaDB',
    why: 'the store on MySQL and fenceTransaction are tested on a real one',
    find: () => onPath('mariadbd') ?? ['/usr/sbin/mariadbd'].find((file) => existsSync(file)),
    package: 'mariadb-server-core',
    byHand:
      'install mariadbd, so that it is on the PATH (Debian and Ubuntu: apt-get install mariadb-server-core)',
    required: false,
    without: 'the tests on MySQL failed',
  },
  {
    name: 'libfaketime',
    why: 'test/faults sets the clock of its Redis servers with it',
    find: () => findLibrary('faketime', 'libfaketime.so.1'),
    package: 'libfaketime',
    byHand: 'Debian and Ubuntu: apt-get install libfaketime',
    required: false,
    without: 'the tests that set the clock of a server failed',
  },
  {
    name: 'PostgreSQL',
    why: 'the store on PostgreSQL and fenceTransaction are tested on a real one',
    find: () => postgresProgram('postgres'),
    package: 'postgresql',
    byHand: 'Debian and Ubuntu: apt-get install postgresql; macOS: brew install postgresql',
    required: false,
    without: 'the tests on PostgreSQL failed',
  },
  {
    name: 'PgBouncer',
    why: 'the store on PostgreSQL is tested behind a real one',
    find: () => onPath('pgbouncer') ?? ['/usr/sbin/pgbouncer'].find((file) => existsSync(file)),
    package: 'pgbouncer',
    byHand: 'Debian and Ubuntu: apt-get install pgbouncer; macOS: brew install pgbouncer',
    required: false,
    without: 'the tests behind PgBouncer failed',
  },
];

const say = (line) => console.log(`machine: ${line}`);

const install = (need) => {
  // Another command may have installed it while this one waited.
  if (need.find()) return;
  try {
    installWithApt(need.package);
  } catch (error) {
    throw new Error(`${error.message}\n${error.output ?? ''}`.trimEnd(), { cause: error });
  }
  if (!need.find())
    throw new Error(`apt-get installed ${need.package}, but ${need.name} is not where it should be`);
};

/** Prints in one line how a need is met. Resolves with whether it is met in the end. */
const provide = async (need, { dryRun }) => {
  const there = need.find();
  if (there) {
    say(`${need.name}: ${there}`);
    return true;
  }
  const missing = `${need.name}: missing; ${need.why}`;
  if (!mayInstall()) {
    say(`${missing}; not installed (that takes Linux, apt-get and root); ${need.byHand}`);
    return false;
  }
  if (dryRun) {
    say(`${missing}; would be installed: ${APT_DOES(need.package)}`);
    return true;
  }
  say(`${missing}; installing it: ${APT_DOES(need.package)}`);
  try {
    await exclusively(() => install(need));
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
