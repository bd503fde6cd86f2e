#!/usr/bin/env node
// Sets up the machine: what the tests need and npm does not install. Says what is there, what it does and what is left
// to do by hand. `npm run setup`, and `npm test` before it begins. Plain Node: it runs before anything is installed.
//
//   node .ci/machine.mjs               installs what is missing, with apt-get and as root; elsewhere it says what to do
//   node .ci/machine.mjs --dry-run     only says it
//
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { APT_DOES, installWithApt, mayInstall } from './apt.mjs';
import { exclusively } from './exclusive.mjs';
import { onPath } from './process.mjs';

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
  },
  {
    name: 'libfaketime',
    why: 'test/faults sets the clock of its Redis servers with it',
    find: () => findLibrary('faketime', 'libfaketime.so.1'),
    package: 'libfaketime',
    byHand: 'Debian and Ubuntu: apt-get install libfaketime',
    required: false,
  },
];

const say = (line) => console.log(`machine: ${line}`);

const install = (need) => {
  // Another command may have done it while this one waited for its turn.
  if (need.find()) return;
  try {
    installWithApt(need.package);
  } catch (error) {
    throw new Error(`${error.message}\n${error.output ?? ''}`.trimEnd(), { cause: error });
  }
  if (!need.find())
    throw new Error(`apt-get installed ${need.package}, but ${need.name} is not where it should be`);
};

/** Whether the tests can run, as far as this need goes. */
const provide = async (need, { dryRun }) => {
  const there = need.find();
  if (there) {
    say(`${need.name}: ${there}`);
    return true;
  }
  say(`${need.name}: missing; ${need.why}`);
  if (!mayInstall()) {
    say(`${need.name}: not installed (that takes Linux, apt-get and root); ${need.byHand}`);
    return !need.required;
  }
  if (dryRun) {
    say(`${need.name}: would be installed: ${APT_DOES(need.package)}`);
    return true;
  }
  say(`${need.name}: installing it: ${APT_DOES(need.package)}`);
  try {
    await exclusively(() => install(need));
    return true;
  } catch (error) {
    say(`${need.name}: ${error.message}; ${need.byHand}`);
    return !need.required;
  }
};

const flags = process.argv.slice(2);
const dryRun = flags.includes('--dry-run');
const unknown = flags.filter((flag) => flag !== '--dry-run');
if (unknown.length > 0) {
  console.error(`machine: unknown option ${unknown.join(', ')}; there is --dry-run`);
  process.exitCode = 1;
} else {
  for (const need of NEEDS) if (!(await provide(need, { dryRun }))) process.exitCode = 1;
}
